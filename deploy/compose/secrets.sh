#!/bin/sh
# Makes the secrets of compose.yaml in ./secrets. What is there is never replaced, since it opens stored data; run again
# after an upgrade, it adds what a newer version needs besides.
set -eu
cd "$(dirname "$0")"
umask 077
random() { head -c "$1" /dev/urandom | base64 | tr -d '\n'; }
letters() { head -c 48 /dev/urandom | base64 | tr -dc 'A-Za-z0-9' | head -c 40; }
added=
# A file of its own name, whole or not at all.
add() {
  [ -e "secrets/$1" ] && return
  cat > "secrets/$1.new"
  mv "secrets/$1.new" "secrets/$1"
  added="$added secrets/$1"
}

if [ ! -e secrets ]; then
  password=$(letters)
  access=$(letters)
  secret=$(letters)
  rm -rf secrets.new
  mkdir secrets.new
  echo "POSTGRES_PASSWORD=$password" > secrets.new/database.env
  cat > secrets.new/countersign.env <<END
COUNTERSIGN_DATABASE_URL=postgresql://countersign:$password@database/countersign
COUNTERSIGN_MASTER_KEY=$(random 32)
AWS_ACCESS_KEY_ID=$access
AWS_SECRET_ACCESS_KEY=$secret
END
  cat > secrets.new/s3.json <<END
{"identities": [{"name": "countersign", "credentials": [{"accessKey": "$access", "secretKey": "$secret"}],
  "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}
END
  mv secrets.new secrets
  added=" secrets"
fi
password=$(letters)
# For the server, which takes it at its start, for valkey-cli, and for the nodes.
add counters.env <<END
REDISCLI_AUTH=$password
COUNTERSIGN_COUNTERS_URL=redis://:$password@counters:6379/0
END
add backup.env <<END
COUNTERSIGN_BACKUP_PASSPHRASE=$(random 24)
END

if [ -z "$added" ]; then
  echo "secrets/ is there already; it is kept. Remove it only together with the volumes." >&2
  exit 1
fi
echo "Made:$added."
echo "Keep copies of COUNTERSIGN_MASTER_KEY (secrets/countersign.env) and COUNTERSIGN_BACKUP_PASSPHRASE"
echo "(secrets/backup.env) on another machine, apart from all backups: without them nobody opens what is sealed."
