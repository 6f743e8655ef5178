package main
import ("context";"flag")
type agentOptions struct{ listen string }
func agentFlags(c *call, fs *flag.FlagSet) {}
func agent(ctx context.Context, c *call) error { return nil }
