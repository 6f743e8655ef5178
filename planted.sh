#!/usr/bin/env bash
# Switches every planted bug on in turn and shows which check catches it; see internal/mutants. With -some only the part for every merge.
cd "$(dirname "$0")" && exec go run ./internal/mutants/catch "$@"
