package mortisecertmagic_test

import (
	"context"
	"fmt"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisecertmagic"
)

// CertMagic takes its locks from mortise, and keeps its files where they were.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; a service has three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	files := &certmagic.FileStorage{Path: dir} // for example a bucket that all instances use
	storage := mortisecertmagic.Wrap(files, node, mortisecertmagic.Options{})
	certmagic.Default.Storage = storage

	// CertMagic makes these calls.
	fmt.Println("locked, error:", storage.Lock(ctx, "issue_cert_example.com"))
	ok, err := storage.TryLock(ctx, "issue_cert_example.com")
	fmt.Println("locked again:", ok, err)
	fmt.Println("unlocked, error:", storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// locked, error: <nil>
	// locked again: false <nil>
	// unlocked, error: <nil>
}
