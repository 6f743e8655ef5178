package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

func usage(out io.Writer, all []command) {
	fmt.Fprint(out, "mortise COMMAND [flags] ...\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cmd := range all {
		fmt.Fprintf(w, "  %s\t%s\n", cmd.name, cmd.about)
	}
	w.Flush()
	fmt.Fprint(out, "\nmortise help COMMAND shows examples and flags. Flags or the variables MORTISE_JOIN, "+
		"MORTISE_SECRET "+
		"and so on describe the cluster.\n")
}

func help(c *call, cmd command) {
	fmt.Fprintf(c.out, "mortise %s\n%s\n\n", strings.TrimSpace(cmd.name+" [flags] "+cmd.args), cmd.about)
	for line := range strings.Lines(cmd.examples) {
		fmt.Fprintf(c.out, "  mortise %s\n", strings.TrimSpace(line))
	}
	fs, _ := cmd.flagsOf(c)
	shared := map[string]bool{}
	common, _ := command{instance: cmd.instance}.flagsOf(&call{changed: map[string]string{}})
	common.VisitAll(func(f *flag.Flag) { shared[f.Name] = true })
	listFlags(c.out, "flags of this command", fs, func(name string) bool { return !shared[name] })
	listFlags(c.out, "flags that describe the cluster, and the variables that they replace", fs,
		func(name string) bool { return shared[name] })
}

func listFlags(out io.Writer, heading string, fs *flag.FlagSet, which func(name string) bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) {
		if !which(f.Name) {
			return
		}
		if heading != "" {
			fmt.Fprintf(w, "\n%s:\n", heading)
			heading = ""
		}
		value, about := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			about += " (" + f.DefValue + ")"
		}
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace("-"+f.Name+" "+value), about)
	})
	w.Flush()
}
