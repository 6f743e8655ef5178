package mortisekubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, elect) }

// elect runs in a process of its own. The leader appends its token to a file, and leads until its
// process ends.
func elect(_ context.Context, node *mortise.Node) error {
	tokens, err := os.OpenFile(os.Getenv("TOKENS"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	lock := New(node, key, fmt.Sprint("process-", os.Getpid()), Options{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 250 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				_, err := fmt.Fprintln(tokens, lock.Held().Token())
				fmt.Println("leads", err)
			},
			OnStoppedLeading: func() { fmt.Println("stopped") },
		},
	})
	if err != nil {
		return err
	}
	go elector.Run(context.Background())
	return nil
}

// Three processes elect a leader in real time. It is killed, and another one leads with a higher
// token, after the LockDelay.
func TestAProcessIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	f := trio.Start(t, "TOKENS="+file)
	first := f.Await(1, "leads <nil>")[0]
	f.Kill(first)
	begin := time.Now()
	f.Await(2, "leads <nil>")
	// A session of 2 s, a LockDelay of 4 s, an election in the group, and a try each 0.55 s.
	if after := time.Since(begin); after < 3*time.Second || after > 40*time.Second {
		t.Errorf("another process leads after %v, not after 3 s to 40 s", after)
	} else {
		t.Logf("another process leads after %v", after)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int
	for _, field := range strings.Fields(string(text)) {
		token, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if len(tokens) != 2 || tokens[0] >= tokens[1] {
		t.Errorf("the tokens of the leaders are %d", tokens)
	}
}
