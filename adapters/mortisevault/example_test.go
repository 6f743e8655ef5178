package mortisevault_test

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/sdk/physical/inmem"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisevault"
)

// Each server runs this. One of them is active.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()

	storage, err := inmem.NewInmem(nil, hclog.NewNullLogger()) // for example a bucket that all servers use
	if err != nil {
		panic(err)
	}
	backend := mortisevault.New(node, storage, mortisevault.Options{})

	lock, err := backend.LockWith("core/lock", "https://10.0.0.7:8200") // Vault calls this and the following
	if err != nil {
		panic(err)
	}
	lost, err := lock.Lock(nil) // waits as a standby, and is active until lost closes
	if err != nil || lost == nil {
		panic(err)
	}
	held, value, err := lock.Value() // on every server
	fmt.Println(held, value, err)
	fmt.Println("error of Unlock:", lock.Unlock())
	// Output:
	// true https://10.0.0.7:8200 <nil>
	// error of Unlock: <nil>
}
