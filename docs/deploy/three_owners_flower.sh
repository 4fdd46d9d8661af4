#!/usr/bin/env bash
# Three owners on this machine, over TLS, on Flower: from an exported row to a model that answers, with one owner killed and back.
#
#   bash three_owners_flower.sh RUN ROW TABLES PLACE
#
# RUN: a finished run; ROW: one of its rows; TABLES: a folder with the tables of each owner (owner 0 first, by name); PLACE: a new
# folder for everything that this writes. FLOWER: the folder with Flower's commands, in an environment of its own in which fedgraph's
# wheel is installed, too (docs/deploy.md says how). PORT: the first of four free ports.
set -euo pipefail
RUN=$1 ROW=$2 TABLES=$3 PLACE=$4
FLOWER=${FLOWER:?the folder with flower-superlink, flower-supernode and flwr}
PORT=${PORT:-18400}
mkdir "$PLACE"
PLACE=$(cd "$PLACE" && pwd)
export FLWR_HOME=$PLACE/flwr FLWR_TELEMETRY_ENABLED=0
export PATH=$PATH:$FLOWER  # it starts its own programs by name
say() { printf '\n== %s\n' "$*"; }
started=()
trap 'kill "${started[@]}" 2>/dev/null || true' EXIT

say "The server's side exports the row, and prices what was written"
fedgraph export "$RUN" "$ROW" "$PLACE/app" --to flower
fedgraph price "$PLACE/app" > "$PLACE/price.txt"
head -3 "$PLACE/price.txt"

say "A certificate for localhost: an authority of our own signs it; everybody gets the authority's certificate"
mkdir "$PLACE/tls"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=our-authority -keyout "$PLACE/tls/ca.key" -out "$PLACE/tls/ca.pem" 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout "$PLACE/tls/server.key" -out "$PLACE/tls/server.csr" 2>/dev/null
openssl x509 -req -in "$PLACE/tls/server.csr" -CA "$PLACE/tls/ca.pem" -CAkey "$PLACE/tls/ca.key" -CAcreateserial -days 30 \
  -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out "$PLACE/tls/server.pem" 2>/dev/null

say "The SuperLink: HTTPS on port $PORT; packages are those of its own environment, so no 'uv sync' before each run"
"$FLOWER/flower-superlink" --ssl-ca-certfile "$PLACE/tls/ca.pem" --ssl-certfile "$PLACE/tls/server.pem" --ssl-keyfile "$PLACE/tls/server.key" \
  --host 127.0.0.1 --port "$PORT" --disable-runtime-dependency-installation > "$PLACE/superlink.log" 2>&1 &
started+=($!)

say "Each owner makes its file of its own tables, and starts its SuperNode"
nodes=()
node() { # number
  "$FLOWER/flower-supernode" --root-certificates "$PLACE/tls/ca.pem" --superlink "localhost:$PORT" --host 127.0.0.1 --port $((PORT + 1 + $1)) \
    --ssl-ca-certfile "$PLACE/tls/ca.pem" --ssl-certfile "$PLACE/tls/server.pem" --ssl-keyfile "$PLACE/tls/server.key" \
    --node-config "graph=\"$PLACE/owner-$1.json\"" >> "$PLACE/supernode-$1.log" 2>&1 &
  nodes[$1]=$!
  started+=($!)
}
number=0
for tables in "$TABLES"/*/; do
  said=$(fedgraph site "$tables" --for "$PLACE/app" --client $number -o "$PLACE/owner-$number.json")
  echo "$said"
  [[ $said != *"would be refused"* ]] || { echo "rehearse with a copy of the tables, without its *.budget*" >&2; exit 1; }
  node $number
  number=$((number + 1))
done

say "The run is submitted; after the first round owner 1 is killed, and comes back"
mkdir -p "$FLWR_HOME"
cat > "$FLWR_HOME/config.toml" <<TOML
[superlink]
default = "ours"

[superlink.ours]
address = "localhost:$PORT"
root-certificates = "$PLACE/tls/ca.pem"
TOML
"$FLOWER/flwr" run "$PLACE/app" --run-config "out='$PLACE/answer' patience=900"
done_rounds() { python3 -c "import json,sys; print(len(json.load(open(sys.argv[1]))['done']))" "$PLACE/answer/state.json" 2>/dev/null || echo 0; }
rounds=$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['rounds'])" "$PLACE/app/fedgraph_export.json")
wait_for() { # number of rounds, seconds
  for _ in $(seq "$2"); do
    [ "$(done_rounds)" -ge "$1" ] && return 0
    sleep 1
  done
  echo "only $(done_rounds) of $1 rounds after $2 seconds; see $PLACE/superlink.log" >&2
  return 1
}
wait_for 1 900
kill -9 "${nodes[1]}"
echo "owner 1 is gone after $(done_rounds) rounds"
sleep 5
node 1
wait_for "$rounds" 900
sleep 3

say "The model, its sheet, what left, and answers for new people"
fedgraph model "$PLACE/answer" -o "$PLACE/people.model"
fedgraph sheet "$PLACE/people.model" --out "$PLACE/sheets"
fedgraph audit wire "$PLACE/answer/wire" "$PLACE/app" --owners "$PLACE"/owner-*.json
for tables in "$TABLES"/*/; do fedgraph budget show "${tables%/}.budget" | sed -n 1,2p; done
say "fedgraph predict $PLACE/people.model FOLDER --people own -o answers.csv"
