package judge_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/judge"
)

func TestEveryInput(t *testing.T) {
	storm, err := filepath.Abs("testdata/storm.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	limits.Trials{
		Durations: map[string]func(*testing.T, time.Duration){
			"Options.Timeout": func(t *testing.T, d time.Duration) {
				o := strict()
				o.Timeout = d
				if err := judge.Judge(historytest.Make(all(1, 50)), o); err != nil {
					t.Errorf("with %v: %v", d, err)
				}
			},
		},
		Paths: map[string]func(*testing.T, func()){
			// Files has read the file when it returns.
			"Files(paths)": func(t *testing.T, leave func()) {
				text, err := os.ReadFile(storm)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile("history", text, 0o600); err != nil {
					t.Fatal(err)
				}
				events, err := judge.Files("history")
				if err != nil {
					t.Fatal(err)
				}
				leave()
				if err := judge.Witness(events, strict()); err != nil {
					t.Error(err)
				}
			},
			// The picture is written before Porcupine returns.
			"Options.HTML": func(t *testing.T, leave func()) {
				var broken []history.Event
				for seed := uint64(0); broken == nil; seed++ {
					broken = historytest.Plants()[0].Break(historytest.Make(all(seed, 200)))
				}
				before, err := os.Getwd()
				if err != nil {
					t.Fatal(err)
				}
				o := strict()
				o.HTML = "picture.html"
				if err := judge.Porcupine(broken, o); err == nil {
					t.Error("no violation was found")
				}
				leave()
				if _, err := os.Stat(filepath.Join(before, "picture.html")); err != nil {
					t.Error(err)
				}
			},
		},
	}.Run(t, ".")
}
