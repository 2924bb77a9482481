#compdef handle-resolver-proxy
# Completion of handle-resolver-proxy in zsh. To try: source <(handle-resolver-proxy completion zsh)
# To install, copy this file into a folder of $fpath as _handle-resolver-proxy.
_handle-resolver-proxy() {
  local context state line
  local -a commands help
  help=('(-h --help)'{-h,--help}'[display help for command]')
  commands=(
    'serve:start the proxy; the default command'
    'check-config:check the configuration as serve does; print the values that are set and their source, secrets masked'
    'site-record:print the site record of this proxy (HS_SITE) for clients of the native protocol'
    'resolve:resolve a handle through the proxy and show its cache entries'
    'purge:invalidate handles in every instance'
    'stats:show current statistics'
    'traffic:show limited networks and the counts of each traffic rule, or end a limit'
    'report:show the resolution report of a prefix for a month; requires reports.enabled'
    'export:write the records of a prefix that are in memory, one JSON object per line'
    'import:load the records of an export or of a Handle.Net server into memory'
    'warm:load the handles of a list or a prefix into the cache'
    'bench:send requests to a running proxy and report throughput, latency and hit ratio'
    'check-links:request the URLs of records, and report which are dead, and since when'
    'register:write the keys, the site record and the bundle for registering a Handle service'
    'dev-server:run a Handle server in memory for tests of other programs; not for production'
    'completion:print the completion script of a shell'
    'help:display help for command'
  )
  _arguments -C $help '(-V --version)'{-V,--version}'[print the version]' '1:command:->command' '*::argument:->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $line[1] in
        serve)
          _arguments $help \
            '--config[configuration file (YAML), instead of the one named by CONFIG]:file:_files'
          ;;
        check-config)
          _arguments $help \
            '--config[configuration file (YAML), instead of the one named by CONFIG]:file:_files' \
            '--all[also print the keys that have their default]' \
            '--probe[also test the Handle server, its secondaries, Redis and the reverse lookup]' \
            '--json[print JSON]'
          ;;
        site-record)
          _arguments $help \
            '--config[configuration file (YAML), instead of the one named by CONFIG]:file:_files' \
            '--index[index of the value in the prefix record]:value: ' \
            '--caching[print a primary site for clients that use only this one (local_info.json, resolver_site)]' \
            '--binary[print a binary resolver_site file]'
          ;;
        resolve)
          _arguments $help \
            '--proxy[address of the public listener]:value: ' \
            '--admin[address of the admin listener]:value: ' \
            '--direct[resolve at this Handle server instead of the proxy]:value: ' \
            '--fingerprint[SHA-256 of the certificate, for --direct]:value: ' \
            '--ca[PEM file of the authority that signed the certificate]:file:_files' \
            '--insecure[accept any certificate with --direct, and print its fingerprint]' \
            '--native[resolve over the native protocol at this host, udp\://host\:port or tcp\://host\:port]:value: ' \
            '--json[print the response body unchanged, as in a pipe]' \
            '--plain[print index, type, ttl and data of each value, separated by tabs]'
          ;;
        purge)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--prefix[all handles of this prefix, such as 21.T1]:value: ' \
            '--all[all handles]' \
            '--soft[mark entries as stale instead of removing them]' \
            '--json[print JSON]'
          ;;
        stats)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--watch[refresh every second until Ctrl-C]' \
            '--json[print JSON]'
          ;;
        traffic)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--unblock[end the limit of this network]:value: ' \
            '--json[print JSON]'
          ;;
        report)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--prefix[prefix without a slash, such as 21.T1; other for all prefixes without a report]:value: ' \
            '--month[month in UTC, such as 2026-11, by default the current month]:value: ' \
            '--csv[write summary.csv, top.csv and failed.csv to this folder]:folder:_files -/' \
            '--json[print JSON]'
          ;;
        export)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--prefix[all handles of this prefix, such as 21.T1]:value: ' \
            '--output[file instead of standard output; compressed when its name ends in .gz]:file:_files'
          ;;
        import)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--output[write a seed file instead; compressed when its name ends in .gz]:file:_files' \
            '--skip[number of records to skip at the beginning of the file, to resume]:value: ' \
            '*:argument:_files'
          ;;
        warm)
          _arguments $help \
            '--proxy[address of the public listener]:value: ' \
            '--prefix[warm all handles that the Handle server lists under this prefix]:value: ' \
            '--user[user for listing, such as 300\:21.T1/USER]:value: ' \
            '--password-file[file with the password of the user, instead of HANDLE_PASSWORD]:file:_files' \
            '--page-size[handles per page of the list]:value: ' \
            '--concurrency[maximum concurrent requests]:value: ' \
            '--rate[maximum requests per second; 0 is unlimited]:value: ' \
            '--state[file that records when each handle is due again, to resume and to refresh]:file:_files' \
            '*:argument:_files'
          ;;
        bench)
          _arguments $help \
            '--proxy[address of the public listener]:value: ' \
            '--file[file with one handle per line; - for standard input]:file:_files' \
            '--duration[maximum duration, up to 60]:value: ' \
            '--requests[maximum requests, up to 1000000]:value: ' \
            '--connections[concurrent connections, up to 256]:value: ' \
            '--rate[maximum requests per second; 0 is unlimited]:value: ' \
            '--remote[allow a proxy on another machine]' \
            '--json[print JSON]'
          ;;
        check-links)
          _arguments $help \
            '--admin[address of the admin listener]:value: ' \
            '--prefix[all handles of this prefix, such as 21.T1]:value: ' \
            '--state[file with the last check of each URL, to resume]:file:_files' \
            '--csv[write the dead links to this file]:file:_files' \
            '--rate[maximum requests per minute to a host]:value: ' \
            '--hosts[maximum hosts that are requested at the same time]:value: ' \
            '--timeout[maximum duration of a request]:value: ' \
            '--age[age from which a URL is checked again]:value: ' \
            '--json[print JSON]' \
            '*:argument:_files'
          ;;
        register)
          _arguments $help \
            '--output[folder of the files; existing files are never replaced]:folder:_files -/' \
            '--address[public IP address of the service]:value: ' \
            '--address6[public IPv6 address of a service that also has an IPv4 address]:value: ' \
            '--tcp-port[port of the native protocol over TCP]:value: ' \
            '--udp-port[port of the native protocol over UDP; 0 for none]:value: ' \
            '--http-port[port of HTTP]:value: ' \
            '--organization[organization that runs the service]:value: ' \
            '--email[e-mail address of the contact]:value: ' \
            '--contact[name of the contact]:value: ' \
            '--phone[phone number of the contact, without +]:value: ' \
            '--description[description of the service, by default the organization]:value: ' \
            '--prefix[prefix of the service, once it is assigned]:value: ' \
            '--serial[serial number of the site; raise it with every change]:value: ' \
            '--key-size[size of new RSA keys]:value:(2048 4096)' \
            '--keys[folder with pubkey.bin and admpub.bin of a service that moves; creates no keys]:folder:_files -/' \
            '--passphrase-file[file with the passphrase that encrypts the private keys]:file:_files'
          ;;
        dev-server)
          _arguments $help \
            '--host[address to listen on]:value: ' \
            '--port[port of the record interface; 0 selects a free one]:value: ' \
            '--records[file with a record per line (handle and values), compressed with gzip or not]:file:_files' \
            '--native-port[port of the native protocol over UDP and TCP]:value: '
          ;;
        completion)
          _arguments $help \
            '*:argument:(bash zsh fish)'
          ;;
        help)
          _arguments $help \
            '*:argument:(serve check-config site-record resolve purge stats traffic report export import warm bench check-links register dev-server completion help)'
          ;;
      esac
      ;;
  esac
}
if [ "$funcstack[1]" = _handle-resolver-proxy ]; then
  _handle-resolver-proxy "$@"
else
  compdef _handle-resolver-proxy handle-resolver-proxy
fi
