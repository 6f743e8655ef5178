package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/barrier"
	"github.com/mortise-lock/mortise/election"
	keeping "github.com/mortise-lock/mortise/keep"
	"github.com/mortise-lock/mortise/shard"
	"github.com/mortise-lock/mortise/tick"
)

// labelling has a call of each package that adds a label to its requests. Each call requests the
// key "own", or the key "own/shard/0", and returns the error of that request.
var labelling = map[string]func(ctx context.Context, n *mortise.Node) error{
	"keep": func(ctx context.Context, n *mortise.Node) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return keeping.Run(ctx, n, mortise.Request{Key: "own"}, keeping.Options{},
			func(context.Context, *mortise.Lock) error { return nil })
	},
	"election": func(ctx context.Context, n *mortise.Node) error {
		leads, err := election.New(n, "own", election.Options{}).Campaign(ctx, "")
		if err != nil {
			return err
		}
		return leads.Resign(ctx)
	},
	"tick": func(ctx context.Context, n *mortise.Node) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var ran error
		_ = tick.Run(ctx, n, tick.Job{Name: "own", Schedule: tick.Every(time.Second),
			Run:    func(context.Context, tick.Tick) error { return nil },
			Report: func(_ tick.Tick, err error) { ran = err; cancel() }})
		return ran
	},
	"shard": func(ctx context.Context, n *mortise.Node) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var ran error
		_ = shard.Run(ctx, n, shard.Work{Name: "own", Count: 1,
			Run:    func(context.Context, shard.Shard) error { cancel(); return nil },
			Report: func(_ int, err error) { ran = err; cancel() }})
		return ran
	},
	"barrier": func(ctx context.Context, n *mortise.Node) error {
		d, err := barrier.NewDouble(n, "own", 1)
		if err != nil {
			return err
		}
		_, err = d.Enter(ctx, "x")
		var entered *mortise.EnteredError
		if !errors.As(err, &entered) || entered.Field != "Value" { // the Value names the participant
			return err
		}
		return nil
	},
}

// TestLabelsOfPackagesDoNotForbidReentry calls each package that adds a label under a lock of its
// own key. The first request has not asked for the label.
func TestLabelsOfPackagesDoNotForbidReentry(t *testing.T) {
	for name, call := range labelling {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 1)
				l := f.acquire(0, mortise.Request{Key: "own", Also: []mortise.Part{{Key: "own/shard/0"}},
					Labels: map[string]string{"team": "blue"}})
				if err := call(l.Context(t.Context()), f.nodes[0].Node); err != nil {
					t.Error(err)
				}
				if err := l.Err(); err != nil {
					t.Errorf("the first handle: %v", err)
				}
				for want, labels := range map[string]map[string]string{
					"": {"team": "blue", "mortise.purpose": "job"}, "Labels": {"team": "red", "mortise.purpose": "job"},
				} {
					again, err := f.nodes[0].Acquire(l.Context(t.Context()), mortise.Request{Key: "own", Labels: labels})
					var entered *mortise.EnteredError
					if errors.As(err, &entered); (err != nil) != (want != "") || err != nil && entered.Field != want {
						t.Errorf("%v: %v", labels, err)
					}
					if err == nil {
						unlock(t, again)
					}
				}
				unlock(t, l)
			})
		})
	}
}

// TestEveryLabellingPackageIsTried searches the sources for packages that add a label.
func TestEveryLabellingPackageIsTried(t *testing.T) {
	files, err := filepath.Glob("../../../*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		if !strings.HasSuffix(file, "_test.go") && strings.Contains(string(text), "shown.Purpose(") {
			if found++; labelling[name] == nil {
				t.Errorf("package %s adds a label, and is not in the table", name)
			}
		}
	}
	const purpose = "mortise.purpose" // a lock is entered again in spite of it, see above
	label := regexp.MustCompile(`(?:Labels: *|return )map\[string\]string\{([^}]*)\}`)
	adapters := 0
	err = filepath.WalkDir("../../../adapters", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, set := range label.FindAllSubmatch(text, -1) {
			adapters++
			if key, _, _ := strings.Cut(string(set[1]), ":"); key != `"`+purpose+`"` || strings.Count(string(set[1]), ":") != 1 {
				t.Errorf("%s adds the label %s, which would forbid to enter a lock again", path, set[1])
			}
		}
		return err
	})
	if err != nil || adapters < 6 {
		t.Errorf("%d labels of adapters: %v", adapters, err)
	}
	if found < len(labelling) {
		t.Errorf("%d of %d packages were found", found, len(labelling))
	}
}
