package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

const (
	secretA = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
	secretB = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0"
)

func withSecret(secret string, old ...string) func(*mortise.Config) {
	return func(c *mortise.Config) { c.Insecure, c.Secret, c.OldSecrets = false, secret, old }
}

func TestOneSecretIsEnough(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		for i := range 3 {
			unlock(t, f.lock(i, "k"))
		}
		if n := len(f.nodes[0].Cluster().Members()); n != 3 {
			t.Errorf("gossip sees %d members, want 3", n)
		}
		f.crash(f.leader())
		unlock(t, f.lock(f.leader(), "k"))
		f.nothingLeft()
	})
}

type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) matching(part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// TestStrangersStayOutside starts an instance with another secret than the group. The instance must
// be refused, with the reason on both sides.
func TestStrangersStayOutside(t *testing.T) {
	slow.UnderRace(t)
	const addrs = `10\.0\.0\.1:7947, 10\.0\.0\.2:7947, 10\.0\.0\.3:7947`
	other := `founding waits: 1 of 3 instances \(Replicas: 3\) are here \(node-3\); ` +
		`another cluster or another program listens at ` + addrs + ` \(`
	const another = `the other side has another secret \("mortise authority [0-9a-f]{16}"\) or another ` +
		`Config\.Cluster: set .*\): `
	const step = `if those belong together, correct the secret and Cluster of this instance`
	for _, c := range []struct {
		name           string
		group, changed func(*mortise.Config)
		waits          string // the text that Status and Lock of the stranger report
	}{
		{"wrong secret", withSecret(secretA), withSecret(secretB), other +
			another + step},
		{"no secret", withSecret(secretA), func(*mortise.Config) {}, `founding waits: ` + addrs + ` cannot be asked: ` +
			regexp.QuoteMeta(credentials.OwnPlain)},
		{"a secret where the group has none", func(*mortise.Config) {}, withSecret(secretA), `founding waits: ` + addrs +
			` cannot be asked: ` + regexp.QuoteMeta(credentials.OtherPlain)},
		{"another cluster", withSecret(secretA),
			func(c *mortise.Config) { withSecret(secretA)(c); c.Cluster = "other" }, other +
				another + step},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var ours, theirs lines
				f := startFleet(t, 3, c.group,
					func(c *mortise.Config) { c.Logger = slog.New(slog.NewTextHandler(&ours, nil)) })
				mine := f.lock(0, "k")
				stranger := f.config(3, 3)
				c.changed(&stranger)
				stranger.Logger = slog.New(slog.NewTextHandler(&theirs, nil))
				f.start(3, stranger)
				time.Sleep(15 * time.Second) // longer than a lease
				if err := mine.Err(); err != nil {
					t.Errorf("a stranger cost a lock: %v", err)
				}
				s := f.nodes[3].Status()
				if s.Group != "" || len(f.nodes[3].Cluster().Members()) > 1 {
					t.Errorf("the stranger has come in:\n%v", s)
				}
				if n := len(f.nodes[0].Cluster().Members()); n != 3 {
					t.Errorf("gossip sees %d members, want 3", n)
				}
				// Each of the three nodes logs one line of each kind in ten seconds.
				if n := len(ours.matching("level=WARN")); n == 0 || n > 30 {
					t.Errorf("the group logged %d warnings in 15 s:\n%s", n, ours.text.String())
				}
				if n := len(theirs.matching("level=")); n == 0 || n > 30 {
					t.Errorf("the stranger logged %d lines in 15 s:\n%s", n, theirs.text.String())
				}
				if !regexp.MustCompile("^" + c.waits + "$").MatchString(s.Waiting) {
					t.Errorf("the stranger waits for\n%s\nwant\n%s", s.Waiting, c.waits)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := f.nodes[3].Lock(ctx, "k")
				if !errors.Is(err, context.DeadlineExceeded) ||
					!regexp.MustCompile(`\(`+c.waits+`\)$`).MatchString(err.Error()) {
					t.Errorf("Lock of the stranger: %v", err)
				}
				t.Logf("the stranger's log: %v\nthe group's: %v", first(theirs.matching("level=WARN")),
					first(ours.matching("level=WARN")))
				unlock(t, mine)
			})
		})
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// TestSecretIsReplacedByRollingDeploys executes the three steps that Config.OldSecrets describes.
// The group must keep its leader and a lock.
func TestSecretIsReplacedByRollingDeploys(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withSecret(secretA))
		// A fourth instance executes the steps first, while the three voters keep the old secret.
		for step, change := range []func(*mortise.Config){withSecret(secretA), withSecret(secretA, secretB),
			withSecret(secretB, secretA)} {
			c := f.config(3, 3)
			change(&c)
			f.start(3, c)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			l, err := f.nodes[3].Lock(ctx, fmt.Sprintf("step %d", step))
			cancel()
			switch {
			case step < 2 && err != nil:
				t.Fatalf("step %d: %v", step, err)
			case step < 2:
				unlock(t, l)
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("an instance two steps ahead of the voters was let in: %v", err)
			}
			f.close(3)
		}
	})
}

// derived returns a secret that is derived from secretA, with the label of these tests.
func derived(t *testing.T, words ...string) string {
	t.Helper()
	c, err := capability.Build("cron-host", time.Time{}, words...)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := credentials.DeriveSecret(secretA, "mortise", c.Text())
	if err != nil {
		t.Fatal(err)
	}
	return secret
}
