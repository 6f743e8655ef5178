package mortisecollector

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap/exp/zapslog"

	"github.com/mortise-lock/mortise"
)

const typeName = "mortise"

// NewFactory returns the factory of extensions that have a node each. Their configuration is
// Config. A node starts with its extension, and leaves when the extension shuts down.
func NewFactory() extension.Factory {
	return newFactory(func() component.Config { return &Config{} },
		func(set extension.Settings, config component.Config) (*Elector, error) {
			c, is := config.(*Config)
			if !is {
				return nil, fmt.Errorf("mortisecollector: the configuration of %s is a %T, not a *Config", set.ID, config)
			}
			e := newElector(set, c.Key)
			e.open = func(ctx context.Context) (*mortise.Node, error) {
				return mortise.Start(ctx, c.node(slog.New(zapslog.NewHandler(set.Logger.Core()))))
			}
			e.leaves = true
			return e, nil
		})
}

// NewFactoryFor returns the factory of extensions that use the node of the program. Their
// configuration is SharedConfig. The program starts the node before the collector, and calls
// Node.Leave after the collector has shut down.
func NewFactoryFor(node *mortise.Node) extension.Factory {
	return newFactory(func() component.Config { return &SharedConfig{} },
		func(set extension.Settings, config component.Config) (*Elector, error) {
			c, is := config.(*SharedConfig)
			if !is {
				return nil, fmt.Errorf("mortisecollector: the configuration of %s is a %T, not a *SharedConfig", set.ID,
					config)
			}
			e := newElector(set, c.Key)
			e.open = func(context.Context) (*mortise.Node, error) { return node, nil }
			return e, nil
		})
}

func newFactory(config component.CreateDefaultConfigFunc,
	create func(extension.Settings, component.Config) (*Elector, error)) extension.Factory {
	return extension.NewFactory(component.MustNewType(typeName), config,
		func(_ context.Context, set extension.Settings, config component.Config) (extension.Extension, error) {
			e, err := create(set, config)
			if err != nil {
				return nil, err
			}
			return e, nil
		}, component.StabilityLevelAlpha)
}
