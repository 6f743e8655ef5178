package mortisevault

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
)

func TestMain(m *testing.M) { trio.Main(m, stand) }

// stand runs in a process of its own. It waits as a standby of Vault does, and then writes.
func stand(ctx context.Context, node *mortise.Node) error {
	files, err := file.NewFileBackend(map[string]string{"path": os.Getenv("FILES")}, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	name := node.Status().Name
	b := New(node, files, Options{})
	lock, err := b.LockWith("core/lock", name)
	if err != nil {
		return err
	}
	lost, err := lock.Lock(nil)
	if err != nil {
		return err
	}
	held, value, err := lock.Value()
	if err != nil {
		return err
	}
	former, err := b.Get(ctx, "core/leader")
	if err != nil {
		return err
	}
	if former != nil {
		fmt.Println("follows", string(former.Value))
	}
	if err := b.Put(ctx, &physical.Entry{Key: "core/leader", Value: []byte(name)}); err != nil {
		return err
	}
	fmt.Println("active", held, value == name)
	<-lost
	return fmt.Errorf("the lock of %s is lost", name)
}

// The active one of three servers is killed. Another one becomes active when its session has
// expired.
func TestTheActiveProcessIsKilled(t *testing.T) {
	f := trio.Start(t, "FILES="+t.TempDir())
	first := f.Await(1, "active true true")[0]
	f.Kill(first)
	f.Await(1, fmt.Sprintf("follows node-%d", first))
	if got := f.Await(2, "active true true"); got[1] == first {
		t.Errorf("process %d is dead", first)
	}
}
