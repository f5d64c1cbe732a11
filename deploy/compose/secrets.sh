#!/bin/sh
# Makes the secrets of compose.yaml in ./secrets, once: what is there is never replaced, since it opens stored data.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
  echo "secrets/ is there already; it is kept. Remove it only together with the volumes." >&2
  exit 1
fi
umask 077
mkdir secrets.new
random() { head -c "$1" /dev/urandom | base64 | tr -d '\n'; }
letters() { head -c 48 /dev/urandom | base64 | tr -dc 'A-Za-z0-9' | head -c 40; }

password=$(letters)
access=$(letters)
secret=$(letters)
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
echo "Made secrets/. Keep a copy of COUNTERSIGN_MASTER_KEY in secrets/countersign.env apart from all backups:"
echo "without it nobody opens what is sealed."
