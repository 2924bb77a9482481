# Completion of handle-resolver-proxy in bash 3.2 and later. To try: source <(handle-resolver-proxy completion bash)
_handle_resolver_proxy() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"
  local options='' arguments=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    command='' previous=''
  fi
  case "$command $previous" in
    'serve --config' | 'check-config --config' | 'site-record --config' | 'resolve --ca' | 'report --csv' | 'export --output' | 'import --output' | 'warm --password-file' | 'warm --state' | 'bench --file' | 'check-links --state' | 'check-links --csv' | 'register --output' | 'register --keys' | 'register --passphrase-file' | 'dev-server --records') _handle_resolver_proxy_files "$current"; return ;;
    'register --key-size') COMPREPLY=($(compgen -W '2048 4096' -- "$current")); return ;;
    'site-record --index' | 'resolve --proxy' | 'resolve --admin' | 'resolve --direct' | 'resolve --fingerprint' | 'resolve --native' | 'purge --admin' | 'purge --prefix' | 'stats --admin' | 'traffic --admin' | 'traffic --unblock' | 'report --admin' | 'report --prefix' | 'report --month' | 'export --admin' | 'export --prefix' | 'import --admin' | 'import --skip' | 'warm --proxy' | 'warm --prefix' | 'warm --user' | 'warm --page-size' | 'warm --concurrency' | 'warm --rate' | 'bench --proxy' | 'bench --duration' | 'bench --requests' | 'bench --connections' | 'bench --rate' | 'check-links --admin' | 'check-links --prefix' | 'check-links --rate' | 'check-links --hosts' | 'check-links --timeout' | 'check-links --age' | 'register --address' | 'register --address6' | 'register --tcp-port' | 'register --udp-port' | 'register --http-port' | 'register --organization' | 'register --email' | 'register --contact' | 'register --phone' | 'register --description' | 'register --prefix' | 'register --serial' | 'dev-server --host' | 'dev-server --port' | 'dev-server --native-port') return ;;
  esac
  case "$command" in
    '') options='--version --help -V -h' arguments='serve check-config site-record resolve purge stats traffic report export import warm bench check-links register dev-server completion help' ;;
    serve) options='--config --help' ;;
    check-config) options='--config --all --probe --json --help' ;;
    site-record) options='--config --index --caching --binary --help' ;;
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
    register) options='--output --address --address6 --tcp-port --udp-port --http-port --organization --email --contact --phone --description --prefix --serial --key-size --keys --passphrase-file --help' ;;
    dev-server) options='--host --port --records --native-port --help' ;;
    completion) options='--help' arguments='bash zsh fish' ;;
    help) options='--help' arguments='serve check-config site-record resolve purge stats traffic report export import warm bench check-links register dev-server completion help' ;;
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
