package trio

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/mortise-lock/mortise"
)

func TestMain(m *testing.M) {
	Main(m, func(ctx context.Context, node *mortise.Node) error {
		lock, err := node.Lock(ctx, "key")
		if err != nil {
			return err
		}
		fmt.Println(os.Getenv("WORD"))
		<-lock.Done()
		return lock.Err()
	})
}

// The process that holds the lock is killed, and another one is granted the lock.
func TestAProcessIsKilled(t *testing.T) {
	f := Start(t, "WORD=locked")
	first := f.Await(1, "locked")[0]
	f.Kill(first)
	if got := f.Await(2, "locked"); got[1] == first {
		t.Errorf("process %d is dead", first)
	}
}
