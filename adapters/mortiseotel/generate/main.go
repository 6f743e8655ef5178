// Command generate writes dashboard.json and alerts.yml to its working directory. Run it with go
// run ./generate.
package main

import (
	"log"
	"os"

	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/pages"
)

func main() {
	dashboard, err := pages.Dashboard()
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range map[string][]byte{"dashboard.json": append(dashboard, '\n'),
		"alerts.yml": pages.AlertRules()} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
