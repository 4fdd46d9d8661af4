# What both scripts of this folder do alike; they read it. It is no program of its own.
say() { printf '\n== %s\n' "$*"; }

export_row() { # RUN ROW framework
  say "The server's side exports the row, and prices what was written"
  fedgraph export "$1" "$2" "$PLACE/app" --to "$3"
  fedgraph price "$PLACE/app" > "$PLACE/price.txt"
  head -3 "$PLACE/price.txt"
  rounds=$(python3 -c "import json,sys; print(json.load(open(sys.argv[1]))['rounds'])" "$PLACE/app/fedgraph_export.json")
}

owner_file() { # tables number file: what an owner types, at the owner
  local said
  said=$(fedgraph site "$1" --for "$PLACE/app" --client "$2" -o "$3")
  echo "$said"
  [[ $said != *"would be refused"* ]] || { echo "rehearse with a copy of the tables, without its *.budget*" >&2; exit 1; }
}

past_rounds() { # merged, or left out
  python3 -c "import json,sys; s=json.load(open(sys.argv[1])); print(len(s['done'] + s['left_out']))" "$PLACE/answer/state.json" 2>/dev/null || echo 0
}

wait_for() { # number of rounds, seconds. Ends at once where 'over' says that nothing runs any more.
  for _ in $(seq "$2"); do
    [ "$(past_rounds)" -lt "$1" ] || return 0
    if over && [ "$(past_rounds)" -lt "$1" ]; then
      echo "ended after $(past_rounds) of $1 rounds. Why, say: $LOGS" >&2
      return 1
    fi
    sleep 1
  done
  echo "only $(past_rounds) of $1 rounds after $2 seconds; see $LOGS" >&2
  return 1
}

ending() { # TABLES, then the owners' files
  local tables=$1
  shift
  say "The model, its sheet, what left, and answers for new people"
  fedgraph model "$PLACE/answer" -o "$PLACE/people.model"
  fedgraph sheet "$PLACE/people.model" --out "$PLACE/sheets"
  fedgraph audit wire "$PLACE/answer/wire" "$PLACE/app" --owners "$@"
  for owner in "$tables"/*/; do
    if [ -e "${owner%/}.budget" ]; then fedgraph budget show "${owner%/}.budget" | sed -n 1,2p; else echo "$owner: never asked, nothing is charged"; fi
  done
  say "fedgraph predict $PLACE/people.model FOLDER --people own -o answers.csv"
}
