// The part of Lua and Redis available to scripts, written in Lua and run once. Any other name is an error, as
// is a new global. Unlike Redis 7, the sandbox has no math.random, os.clock, cmsgpack or loadstring.

export const SANDBOX = `
local seen = { _VERSION = _VERSION }
local names = {
  'assert', 'error', 'getmetatable', 'ipairs', 'next', 'pairs', 'pcall', 'rawequal', 'rawget', 'rawset',
  'select', 'setmetatable', 'tonumber', 'tostring', 'type', 'unpack', 'xpcall', 'string', 'table', 'math',
}
for _, name in ipairs(names) do seen[name] = _G[name] end
seen.math.random, seen.math.randomseed, seen.string.dump = nil, nil, nil

local function reply(field)
  return function(...)
    if select('#', ...) ~= 1 or type((...)) ~= 'string' then return { err = 'wrong number or type of arguments' } end
    return { [field] = (...) }
  end
end
local function error_reply(...)
  local made = reply('err')(...)
  made.err = made.err:gsub('^%-', '')
  if not made.err:find(' ', 1, true) then made.err = 'ERR ' .. made.err end
  return made
end

seen.redis = {
  call = host_call, pcall = host_pcall, sha1hex = host_sha1hex,
  status_reply = reply('ok'), error_reply = error_reply,
  log = function() end, replicate_commands = function() return true end, set_repl = function() end,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_AOF = 1, REPL_ALL = 3,
}
seen.struct = { pack = host_struct_pack, unpack = host_struct_unpack, size = host_struct_size }
seen.cjson = { encode = host_cjson_encode, decode = host_cjson_decode, null = host_cjson_null() }
seen.bit = {}
for _, name in ipairs({
  'tobit', 'bnot', 'band', 'bor', 'bxor', 'lshift', 'rshift', 'arshift', 'rol', 'ror', 'bswap', 'tohex',
}) do
  seen.bit[name] = _G['host_bit_' .. name]
end

setmetatable(seen, { __index = function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end })
local environment = setmetatable({}, {
  __index = seen,
  __newindex = function() error('Attempt to modify a readonly table', 2) end,
})
rawset(seen, '_G', environment)
return seen, environment
`;
