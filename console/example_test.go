package console_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
)

// A service mounts the page beside its own handlers, behind its own authentication. It mounts the
// probes at paths that its orchestrator can reach.
func ExampleNew() {
	ctx := context.Background()
	history := console.NewHistory() // so that the page shows the last hour
	node, err := mortise.Start(ctx, mortise.Config{Name: "orders-0", Hooks: history.Hooks()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	operator := func(r *http.Request) bool {
		_, password, ok := r.BasicAuth()
		return ok && password == "of this example"
	}

	handler := console.New(node, console.Options{MayForce: operator, History: history})
	mux := http.NewServeMux()
	mux.Handle("/ops/locks/", http.StripPrefix("/ops/locks", handler))
	mux.Handle("/livez", handler)
	mux.Handle("/readyz", handler)

	server := httptest.NewServer(mux) // in production, use your own http.Server
	defer server.Close()
	if err := node.Ready(ctx); err != nil {
		panic(err)
	}
	answer, err := http.Get(server.URL + "/readyz")
	if err != nil {
		panic(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d %s", answer.StatusCode, text)
	// Output: 200 ready
}
