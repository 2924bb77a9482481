# Completion of handle-resolver-proxy in bash 3.2 and later. To try: source <(handle-resolver-proxy completion bash)
_handle_resolver_proxy() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"
  local commands='serve check-config resolve purge stats traffic report export import warm bench check-links site-record register dev-server completion help'
  local options='' arguments=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    command='' previous=''
  fi
  case "$command $previous" in
    'serve --config' | 'check-config --config' | 'site-record --config' | 'warm --password-file' | 'warm --state' | 'bench --file' | 'export --output' | 'report --csv' | 'resolve --ca' | 'register --output' | 'register --keys' | 'register --passphrase-file' | 'dev-server --records') _handle_resolver_proxy_files "$current"; return ;;
    *\ --proxy | *\ --admin | *\ --direct | *\ --native | *\ --fingerprint | *\ --prefix | *\ --user | *\ --unblock | *\ --month | *\ --page-size | *\ --index) return ;;
    register\ --*) return ;;
    *\ --host | *\ --port | *\ --native-port) return ;;
    *\ --skip | *\ --concurrency | *\ --rate | *\ --duration | *\ --requests | *\ --connections) return ;;
  esac
  case "$command" in
    '') options='--version --help -V -h' arguments="$commands" ;;
    serve) options='--config --help' ;;
    check-config) options='--config --all --probe --json --help' ;;
    resolve) options='--proxy --admin --direct --fingerprint --ca --insecure --native --json --plain --help' ;;
    purge) options='--admin --prefix --all --soft --json --help' ;;
    stats) options='--admin --watch --json --help' ;;
    traffic) options='--admin --unblock --json --help' ;;
    report) options='--admin --prefix --month --csv --json --help' ;;
    export) options='--admin --prefix --output --help' ;;
    import)
      case "$current" in -*) ;; *) _handle_resolver_proxy_files "$current"; return ;; esac
      options='--admin --output --skip --help'
      ;;
    warm)
      case "$current" in -*) ;; *) _handle_resolver_proxy_files "$current"; return ;; esac
      options='--proxy --prefix --user --password-file --page-size --concurrency --rate --state --help'
      ;;
    bench) options='--proxy --file --duration --requests --connections --rate --remote --json --help' ;;
    check-links)
      case "$current" in -*) ;; *) _handle_resolver_proxy_files "$current"; return ;; esac
      options='--admin --prefix --state --csv --rate --hosts --timeout --age --json --help'
      ;;
    site-record) options='--config --index --caching --binary --help' ;;
    register) options='--output --address --address6 --tcp-port --udp-port --http-port --organization --email --contact --phone --description --prefix --serial --key-size --keys --passphrase-file --help' ;;
    dev-server) options='--host --port --records --native-port --help' ;;
    completion) options='--help' arguments='bash zsh fish' ;;
    help) arguments="$commands" ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
  esac
}
_handle_resolver_proxy_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}
complete -F _handle_resolver_proxy handle-resolver-proxy
