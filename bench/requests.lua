-- wrk plays the requests of a file (raw HTTP, separated by NUL) one after another and prints its figures as JSON.
local requests, place = {}, 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for each in file:read("*a"):gmatch("[^%z]+") do requests[#requests + 1] = each end
  file:close()
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%.6f,"bytes":%d,"p50_ms":%.4f,"p99_ms":%.4f,"failed":%d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
