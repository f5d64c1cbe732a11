#!/bin/sh
# Publish one build from a build machine: examples/ci/push.sh PATH ORG/PRODUCT VERSION CHANNEL PLATFORM
#
# Needs `countersign` on PATH and, as secrets of the build machine, COUNTERSIGN_SERVER, COUNTERSIGN_CLIENT_ID and
# COUNTERSIGN_CLIENT_SECRET of a client with read:products read:releases write:products write:releases.
# It may be run again after any failure: what has arrived is not sent twice, what is public stays public.
set -eu

if [ "$#" -ne 5 ]; then
  echo "usage: $0 PATH ORG/PRODUCT VERSION CHANNEL PLATFORM" >&2
  exit 2
fi
for name in COUNTERSIGN_SERVER COUNTERSIGN_CLIENT_ID COUNTERSIGN_CLIENT_SECRET; do
  eval "value=\${$name:-}"
  if [ -z "$value" ]; then
    echo "$0: $name is not set" >&2
    exit 2
  fi
done
path=$1 product=$2 version=$3 channel=$4 platform=$5

# Exit code 6: the server was away for longer than `push` waits by itself. It continues where it was.
attempt=1
until countersign push "$path" "$product" --version "$version" --channel "$channel" --platform "$platform" --json; do
  code=$?
  if [ "$code" -ne 6 ] || [ "$attempt" -ge 3 ]; then
    exit "$code"
  fi
  attempt=$((attempt + 1))
  sleep 30
done
countersign publish "$product" "$version" --json
