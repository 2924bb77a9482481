# Varnish 7 in front of handle-resolver-proxy, coherent with its writes: see several-instances.md, "Varnish in front".
vcl 4.1;

import std;

backend proxy {
    .host = "127.0.0.1";
    .port = "8080";
}
# Several instances: a backend for each, and
#   import directors;
#   sub vcl_init { new all = directors.round_robin(); all.add_backend(proxy); all.add_backend(second); }
#   sub vcl_recv { set req.backend_hint = all.backend(); }

# The instances of the proxy, which send BAN requests.
acl instances {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ instances) {
            return (synth(403));
        }
        if (!std.ban("obj.http.Surrogate-Key ~ " + req.http.Surrogate-Key)) {
            return (synth(400, std.ban_error()));
        }
        return (synth(200, "Banned"));
    }
}

sub vcl_synth {
    if (req.method == "BAN" && resp.status == 200) {
        set resp.http.Surrogate-Banned = req.http.Surrogate-Key;
    }
}

sub vcl_backend_response {
    set beresp.grace = 0s;
    # Only responses that name their records can be banned. A response that took longer may be from before a write
    # whose ban has already passed: the proxy waits 150 ms before it bans.
    if (!beresp.http.Surrogate-Key || now - bereq.time > 100ms) {
        set beresp.uncacheable = true;
        set beresp.ttl = 1s;
    }
}

sub vcl_deliver {
    unset resp.http.Surrogate-Key;
}
