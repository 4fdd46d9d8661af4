#!/usr/bin/env bash
# Three owners on this machine, over TLS, on Flower: from an exported row to a model that answers, with one owner killed and back.
#
#   bash three_owners_flower.sh RUN ROW TABLES PLACE
#
# RUN: a finished run; ROW: one of its rows; TABLES: a folder with the tables of each owner (owner 0 first, by name); PLACE: a new
# folder for everything that this writes. FLOWER: the folder with Flower's commands, in an environment of its own in which fedgraph's
# wheel is installed, too (docs/deploy.md says how). PORT: the first of four free ports. PATIENCE: seconds for which the server waits
# for an owner. BACK=no: owner 1 stays away (for a row that asks a sample of the owners: it goes on without its rounds).
set -euo pipefail
RUN=$1 ROW=$2 TABLES=$3 PLACE=$4
FLOWER=${FLOWER:?the folder with flower-superlink, flower-supernode and flwr}
PORT=${PORT:-18400} PATIENCE=${PATIENCE:-900} BACK=${BACK:-yes}
source "$(dirname "$0")/three_owners.sh"
mkdir "$PLACE"
PLACE=$(cd "$PLACE" && pwd)
export FLWR_HOME=$PLACE/flwr FLWR_TELEMETRY_ENABLED=0
export PATH=$PATH:$FLOWER  # it starts its own programs by name
started=()
trap 'kill "${started[@]}" 2>/dev/null || true' EXIT

export_row "$RUN" "$ROW" flower

say "A certificate for localhost: an authority of our own signs it; everybody gets the authority's certificate"
mkdir "$PLACE/tls"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=our-authority -keyout "$PLACE/tls/ca.key" -out "$PLACE/tls/ca.pem" 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$PLACE/tls/server.key" -out "$PLACE/tls/server.csr" 2>/dev/null
openssl x509 -req -in "$PLACE/tls/server.csr" -CA "$PLACE/tls/ca.pem" -CAkey "$PLACE/tls/ca.key" -CAcreateserial -days 30 \
  -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out "$PLACE/tls/server.pem" 2>/dev/null
tls=(--ssl-ca-certfile "$PLACE/tls/ca.pem" --ssl-certfile "$PLACE/tls/server.pem" --ssl-keyfile "$PLACE/tls/server.key")

say "The SuperLink: HTTPS on port $PORT; packages are those of its own environment, so no 'uv sync' before each run"
"$FLOWER/flower-superlink" "${tls[@]}" --host 127.0.0.1 --port "$PORT" --disable-runtime-dependency-installation > "$PLACE/superlink.log" 2>&1 &
superlink=$!
started+=("$superlink")
LOGS="$PLACE/superlink.log $PLACE/supernode-*.log"
over() { ! kill -0 "$superlink" 2>/dev/null || grep -qE "Aborted|refuses:" "$PLACE/superlink.log"; }

say "Each owner makes its file of its own tables, and starts its SuperNode"
nodes=()
node() { # number
  "$FLOWER/flower-supernode" --root-certificates "$PLACE/tls/ca.pem" --superlink "localhost:$PORT" --host 127.0.0.1 \
    --port $((PORT + 1 + $1)) "${tls[@]}" --node-config "graph=\"$PLACE/owner-$1.json\"" >> "$PLACE/supernode-$1.log" 2>&1 &
  nodes[$1]=$!
  started+=($!)
}
number=0
for tables in "$TABLES"/*/; do
  owner_file "$tables" $number "$PLACE/owner-$number.json"
  node $number
  number=$((number + 1))
done

say "The run is submitted; after the first round owner 1 is killed ('Killed', which the shell then prints, is that), and comes back"
mkdir -p "$FLWR_HOME"
cat > "$FLWR_HOME/config.toml" <<TOML
[superlink]
default = "ours"

[superlink.ours]
address = "localhost:$PORT"
root-certificates = "$PLACE/tls/ca.pem"
TOML
"$FLOWER/flwr" run "$PLACE/app" --run-config "out='$PLACE/answer' patience=$PATIENCE"
wait_for 1 900
kill -9 "${nodes[1]}"
echo "owner 1 is gone after $(past_rounds) rounds"
sleep 5
[ "$BACK" = no ] || node 1
wait_for "$rounds" 900
sleep 3

ending "$TABLES" "$PLACE"/owner-*.json
