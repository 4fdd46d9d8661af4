#!/usr/bin/env bash
# Three owners on this machine on NVIDIA FLARE (POC: a server and three sites, each with its certificates): from an exported row to
# a model that answers, with one site killed and back.
#
#   bash three_owners_flare.sh RUN ROW TABLES PLACE
#
# RUN, ROW, TABLES and PLACE as in three_owners_flower.sh. FLARE: the folder with FLARE's commands, in an environment of its own in
# which fedgraph's wheel is installed, too.
set -euo pipefail
RUN=$1 ROW=$2 TABLES=$3 PLACE=$4
FLARE=${FLARE:?the folder with nvflare}
mkdir "$PLACE"
PLACE=$(cd "$PLACE" && pwd)
mkdir "$PLACE/home"
export PATH=$PATH:$FLARE
flare() { HOME=$PLACE/home nvflare "$@"; }  # FLARE lists start-up kits in ~/.nvflare; these ones go with PLACE
say() { printf '\n== %s\n' "$*"; }

say "The server's side exports the row, and prices what was written"
fedgraph export "$RUN" "$ROW" "$PLACE/app" --to nvflare
fedgraph price "$PLACE/app" > "$PLACE/price.txt"
head -3 "$PLACE/price.txt"

say "Start-up kits with certificates; here by POC, at real sites by 'nvflare provision'"
export NVFLARE_POC_WORKSPACE=$PLACE/poc
flare poc config --pw "$PLACE/poc" > "$PLACE/poc.log"
flare poc prepare -c client-0 client-1 client-2 >> "$PLACE/poc.log"
kits=$PLACE/poc/example_project/prod_00

say "Each site makes its file of its own tables, and pins the planned noise in its own privacy.json"
mkdir "$PLACE/graphs"
number=0
for tables in "$TABLES"/*/; do
  said=$(fedgraph site "$tables" --for "$PLACE/app" --client $number -o "$PLACE/graphs/client-$number.json")
  echo "$said"
  [[ $said != *"would be refused"* ]] || { echo "rehearse with a copy of the tables, without its *.budget*" >&2; exit 1; }
  cp "$PLACE/app/sites/privacy.json" "$kits/client-$number/local/privacy.json"
  number=$((number + 1))
done
cp -r "$PLACE/app/job/app/custom" "$PLACE/read"  # the copy of the app that each site has read
export FEDGRAPH_GRAPHS=$PLACE/graphs FEDGRAPH_OUT=$PLACE/answer PYTHONPATH=$PLACE/read${PYTHONPATH:+:$PYTHONPATH}

say "Server and sites are started, and the job is submitted"
flare poc start --timeout 300 >> "$PLACE/poc.log" 2>&1
# At the end by name: 'poc stop' alone would first abort the job that went with its site, and give up because it is not running
trap 'flare poc stop -p server -p client-0 -p client-1 -p client-2 >> "$PLACE/poc.log" 2>&1 || true' EXIT
submit() { flare job submit -j "$PLACE/app/job" | tee -a "$PLACE/jobs.log"; }
done_rounds() { python3 -c "import json,sys; print(len(json.load(open(sys.argv[1]))['done']))" "$PLACE/answer/state.json" 2>/dev/null || echo 0; }
rounds=$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['rounds'])" "$PLACE/app/fedgraph_export.json")
wait_for() { # number of rounds, seconds
  for _ in $(seq "$2"); do
    [ "$(done_rounds)" -ge "$1" ] && return 0
    sleep 1
  done
  echo "only $(done_rounds) of $1 rounds after $2 seconds; see $kits/server/log.txt" >&2
  return 1
}
submit
wait_for 1 900

say "Site client-1 is killed: the job cannot go on. It is started again, and the job is submitted again: it goes on where it stopped"
pkill -9 -f "$kits/client-1" || true
echo "client-1 is gone after $(done_rounds) rounds"
flare poc stop >> "$PLACE/poc.log" 2>&1
flare poc start --timeout 300 >> "$PLACE/poc.log" 2>&1
[ "$(done_rounds)" -ge "$rounds" ] || submit
wait_for "$rounds" 900
sleep 5

say "The model, its sheet, what left, and answers for new people"
fedgraph model "$PLACE/answer" -o "$PLACE/people.model"
fedgraph sheet "$PLACE/people.model" --out "$PLACE/sheets"
fedgraph audit wire "$PLACE/answer/wire" "$PLACE/app" --owners "$PLACE"/graphs/client-?.json
for tables in "$TABLES"/*/; do fedgraph budget show "${tables%/}.budget" | sed -n 1,2p; done
say "fedgraph predict $PLACE/people.model FOLDER --people own -o answers.csv"
