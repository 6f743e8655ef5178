package mortisecollector_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisecollector"
)

// A collector with a node of its own makes the extension for its map of extensions. The rest of
// this example is what the Collector and a receiver do with it.
func Example() {
	ctx := context.Background()
	node, err := mortise.Start(ctx, mortise.Config{}) // a group of one; three collectors have one of three
	if err != nil {
		panic(err)
	}
	defer func() { _ = node.Leave(ctx) }()
	factory := mortisecollector.NewFactoryFor(node)

	set := extension.Settings{ID: component.NewID(factory.Type())}
	set.Logger = zap.NewNop()
	ext, err := factory.Create(ctx, set, factory.CreateDefaultConfig())
	if err != nil {
		panic(err)
	}
	elector := ext.(*mortisecollector.Elector)
	if err := elector.Start(ctx, nil); err != nil {
		panic(err)
	}
	started := make(chan bool)
	elector.SetCallBackFuncs(
		func(ctx context.Context) { // the receiver starts
			token, _ := mortise.TokenFrom(ctx)
			started <- token > 0
		},
		func() { fmt.Println("stopped") })
	if err := elector.Ready(); err != nil { // all pipelines have started
		panic(err)
	}
	fmt.Println("started, with a fencing token:", <-started)
	if err := elector.NotReady(); err != nil { // the pipelines are about to stop
		panic(err)
	}
	if err := elector.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output:
	// started, with a fencing token: true
	// stopped
}
