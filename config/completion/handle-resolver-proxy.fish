# Completion of handle-resolver-proxy in fish. To try: handle-resolver-proxy completion fish | source
complete -c handle-resolver-proxy -f

complete -c handle-resolver-proxy -n __fish_use_subcommand -a serve -d 'start the proxy; the default command'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a check-config -d 'check the configuration as serve does; print each value and its source, secrets masked'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a resolve -d 'resolve a handle through the proxy and show its cache entries'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a purge -d 'invalidate handles in every instance'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a stats -d 'show current statistics'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a traffic -d 'show limited networks and what each traffic rule did, or end a limit'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a report -d 'show the resolutions of a prefix in a month, from reports.enabled'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a export -d 'write the records of a prefix that are in memory, one JSON object per line'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a import -d 'put the records of an export into memory'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a warm -d 'load the handles of a list or a prefix into the cache'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a bench -d 'send requests to a running proxy and report throughput, latency and hit ratio'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a site-record -d 'print the site record of this proxy (HS_SITE) for clients of the native protocol'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a completion -d 'print the completion script of a shell'
complete -c handle-resolver-proxy -n __fish_use_subcommand -a help -d 'display help for command'
complete -c handle-resolver-proxy -n __fish_use_subcommand -s V -l version -d 'print the version'
complete -c handle-resolver-proxy -s h -l help -d 'display help for command'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from serve' -l config -r -F -d 'configuration file (YAML), instead of the one named by CONFIG'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from check-config' -l config -r -F -d 'configuration file (YAML), instead of the one named by CONFIG'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from check-config' -l probe -d 'also try the Handle server, its mirrors, Redis and the reverse look-up once'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from check-config' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l proxy -x -d 'address of the public listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l direct -x -d 'resolve at this Handle server instead of the proxy'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l fingerprint -x -d 'certificate of the server of --direct'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l ca -r -F -d 'PEM file of the authority of that certificate'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l insecure -d 'accept any certificate with --direct, and print its fingerprint'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l json -d 'print the response body unchanged, as in a pipe'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from resolve' -l plain -d 'print a line per value, tabs between index, type, ttl and data'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from purge' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from purge' -l prefix -x -d 'all handles that start with this text'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from purge' -l all -d 'all handles'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from purge' -l soft -d 'mark entries as stale instead of removing them'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from purge' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from stats' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from stats' -l watch -d 'refresh every second until Ctrl-C'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from stats' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from traffic' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from traffic' -l unblock -x -d 'end the limit of this network'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from traffic' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from report' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from report' -l prefix -x -d 'prefix without a slash, such as 21.T1; other for those without a report'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from report' -l month -x -d 'month in UTC, such as 2026-11, instead of the current one'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from report' -l csv -r -F -d 'write summary.csv, top.csv and failed.csv to this folder'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from report' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from export' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from export' -l prefix -x -d 'prefix without a slash, such as 21.T1'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from export' -l output -r -F -d 'file instead of standard output; compressed when its name ends in .gz'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from import' -l admin -x -d 'address of the admin listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from import' -l skip -x -d 'records at the beginning of the file to leave out, to resume'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from import' -F
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l proxy -x -d 'address of the public listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l prefix -x -d 'warm all handles that the Handle server lists under this prefix'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l user -x -d 'user for listing, such as 300:21.T1/USER'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l password-file -r -F -d 'file with the password of the user, instead of HANDLE_PASSWORD'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l page-size -x -d 'handles per page of the list'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l concurrency -x -d 'maximum concurrent requests'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l rate -x -d 'maximum requests per second; 0 is unlimited'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -l state -r -F -d 'file that records when each handle is due again, to resume and to refresh'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from warm' -F

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l proxy -x -d 'address of the public listener'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l file -r -F -d 'file with one handle per line; - for standard input'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l duration -x -d 'maximum duration, up to 60'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l requests -x -d 'maximum requests, up to 1000000'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l connections -x -d 'concurrent connections, up to 256'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l rate -x -d 'maximum requests per second; 0 is unlimited'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l remote -d 'allow a proxy on another machine'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from bench' -l json -d 'print JSON'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from site-record' -l config -r -F -d 'configuration file (YAML), instead of the one named by CONFIG'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from site-record' -l index -x -d 'index of the value in the prefix record'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from site-record' -l caching -d 'print the only site of its clients, for local_info.json or resolver_site'
complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from site-record' -l binary -d 'print the bytes of a resolver_site file'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'

complete -c handle-resolver-proxy -n '__fish_seen_subcommand_from help' -a 'serve check-config resolve purge stats traffic report export import warm bench site-record completion help'
