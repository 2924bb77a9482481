-- Requests the targets in a file cyclically, and prints wrk's results as JSON. Target prefixes: `+` sends
-- credentials; `!` sends a PUT with the body after the space; `~` sends If-None-Match with the ETag after the
-- space.
-- Arguments: file, credentials, and `once` to stop after the last target.
local ffi = require('ffi')
ffi.cdef('int getpid(void); int kill(int pid, int signal);')
local SIGINT = 2
local requests, at, once = {}, 0, false

local function read(line, basic)
  local mark = line:sub(1, 1)
  if mark == '+' then return wrk.format('GET', line:sub(2), { Authorization = basic }) end
  if mark ~= '!' and mark ~= '~' then return wrk.format('GET', line) end
  local target, body = line:sub(2):match('^(%S+) (.*)$')
  if mark == '~' then return wrk.format('GET', target, { ['If-None-Match'] = body }) end
  return wrk.format('PUT', target, { Authorization = basic, ['Content-Type'] = 'application/json' }, body)
end

function init(args)
  once = args[3] == 'once'
  for line in io.lines(args[1]) do requests[#requests + 1] = read(line, args[2]) end
end

function request()
  at = at + 1
  if at > #requests then
    -- Interrupts wrk, because `wrk.thread:stop()` ends only the thread, and wrk sleeps until its duration ends.
    if once then ffi.C.kill(ffi.C.getpid(), SIGINT) end
    at = 1
  end
  return requests[at]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"answers":%d,"seconds":%f,"badStatus":%d,"broken":%d,"p50Ms":%f,"p99Ms":%f}\n',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
