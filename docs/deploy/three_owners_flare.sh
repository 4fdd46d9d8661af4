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
source "$(dirname "$0")/three_owners.sh"
mkdir "$PLACE"
PLACE=$(cd "$PLACE" && pwd)
mkdir "$PLACE/home"
export PATH=$PATH:$FLARE
flare() { HOME=$PLACE/home nvflare "$@"; }  # FLARE lists start-up kits in ~/.nvflare; these ones go with PLACE

export_row "$RUN" "$ROW" nvflare

say "Start-up kits with certificates; here by POC, at real sites by 'nvflare provision'"
export NVFLARE_POC_WORKSPACE=$PLACE/poc
flare poc config --pw "$PLACE/poc" > "$PLACE/poc.log"
flare poc prepare -c client-0 client-1 client-2 >> "$PLACE/poc.log"
kits=$PLACE/poc/example_project/prod_00

say "Each site makes its file of its own tables, and pins the planned noise in its own privacy.json"
mkdir "$PLACE/graphs"
number=0
for tables in "$TABLES"/*/; do
  owner_file "$tables" $number "$PLACE/graphs/client-$number.json"
  cp "$PLACE/app/sites/privacy.json" "$kits/client-$number/local/privacy.json"
  number=$((number + 1))
done
cp -r "$PLACE/app/job/app/custom" "$PLACE/read"  # the copy of the app that each site has read
export FEDGRAPH_GRAPHS=$PLACE/graphs FEDGRAPH_OUT=$PLACE/answer PYTHONPATH=$PLACE/read${PYTHONPATH:+:$PYTHONPATH}

say "Server and sites are started, and the job is submitted"
start() { flare poc start --timeout 300 >> "$PLACE/poc.log" 2>&1; }
start
# By name: 'poc stop' alone would first abort the job that went with its site, and give up because it is not running
stop() { flare poc stop -p server -p client-0 -p client-1 -p client-2 >> "$PLACE/poc.log" 2>&1 || true; }
trap stop EXIT
submit() {
  flare job submit -j "$PLACE/app/job" | tee -a "$PLACE/jobs.log"
  local job
  job=$(grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' "$PLACE/jobs.log" | tail -1)
  LOGS="$kits/server/log.txt, and each site's $kits/client-*/$job/error_log.txt"
  flare job wait "$job" >> "$PLACE/jobs.log" 2>&1 &  # ends when the job does
  waiting=$!
}
over() { ! kill -0 "$waiting" 2>/dev/null; }
submit
wait_for 1 900

say "Site client-1 is killed: the job cannot go on. It is started again, and the job is submitted again: it goes on where it stopped"
pkill -9 -f "$kits/client-1" || true
echo "client-1 is gone after $(past_rounds) rounds"
stop
rm -f "$kits/client-1"/*.fl  # what it was, and that it shall stop: a killed site would obey that at its next start
start
[ "$(past_rounds)" -ge "$rounds" ] || submit
wait_for "$rounds" 900
sleep 5

ending "$TABLES" "$PLACE"/graphs/client-?.json
