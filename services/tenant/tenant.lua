#!lua name=fx1_tenants
--[[ Tenants and keys: the changes, each atomic. All keys of the directory share one hash tag, for it is
small and read through caches; they come in KEYS, none is computed here. Times come in ARGV.

key                         type    what
fx:{tenants}:next           string  the last tenant's number
fx:{tenants}:index          zset    names by number
fx:{tenants}:tenant:<name>  hash    number, name, created_ms, weight, limits
fx:{tenants}:keys:<name>    zset    a tenant's key ids by creation
fx:{tenants}:key:<key id>   hash    key_id, digest, tenant, label, created_ms, limits, revoked_ms (once revoked)
Limits are three fields: rpm, tpm, streams; 0 or absent = none. Nothing expires. ]]

local function call(...) -- redis.call is not there yet while the library loads
  return redis.call(...)
end

-- args[at] on: requests a minute, tokens a minute, streams; a caller of before them sends none
local function put_limits(key, args, at)
  call('HSET', key, 'rpm', args[at] or 0, 'tpm', args[at + 1] or 0, 'streams', args[at + 2] or 0)
end

-- KEYS next, index, tenant; ARGV name, created_ms, weight, most tenants, limits
local function create(keys, args)
  if call('EXISTS', keys[3]) == 1 then return {'exists'} end
  if call('ZCARD', keys[2]) >= tonumber(args[4]) then return {'full'} end
  local number = call('INCR', keys[1])
  call('HSET', keys[3], 'number', number, 'name', args[1], 'created_ms', args[2], 'weight', args[3])
  put_limits(keys[3], args, 5)
  call('ZADD', keys[2], number, args[1])
  return {'ok', tostring(number)}
end

-- KEYS tenant, its keys, key; ARGV key id, digest, tenant, label, created_ms, most keys, limits
local function create_key(keys, args)
  if call('EXISTS', keys[1]) == 0 then return {'no tenant'} end
  if call('EXISTS', keys[3]) == 1 then return {'exists'} end
  if call('ZCARD', keys[2]) >= tonumber(args[6]) then return {'full'} end
  call('HSET', keys[3], 'key_id', args[1], 'digest', args[2], 'tenant', args[3], 'label', args[4],
    'created_ms', args[5])
  put_limits(keys[3], args, 7)
  call('ZADD', keys[2], args[5], args[1])
  return {'ok'}
end

-- KEYS key; ARGV key id, now, channel. Told again when it was revoked already: a cache may have missed it.
local function revoke_key(keys, args)
  if call('EXISTS', keys[1]) == 0 then return {'no key'} end
  call('HSETNX', keys[1], 'revoked_ms', args[2])
  call('PUBLISH', args[3], args[1])
  return {'ok'}
end

-- KEYS key or tenant; ARGV what it is called, channel, limits
local function set_limits(keys, args)
  if call('EXISTS', keys[1]) == 0 then return {'nothing'} end
  put_limits(keys[1], args, 3)
  call('PUBLISH', args[2], args[1])
  return {'ok'}
end

-- KEYS hashes; ARGV fields. One array of fields a hash.
local function read(keys, args)
  local out = {}
  for i, key in ipairs(keys) do out[i] = call('HMGET', key, unpack(args)) end
  return out
end

redis.register_function('fx1_tenant_create', create)
redis.register_function('fx1_tenant_create_key', create_key)
redis.register_function('fx1_tenant_revoke_key', revoke_key)
redis.register_function('fx1_tenant_set_limits', set_limits)
redis.register_function{function_name = 'fx1_tenant_read', callback = read, flags = {'no-writes'}}
