// Command record runs another command and writes what it prints as a moving picture: an SVG file in
// which each line appears when it was printed. The picture of README is made by
//
//	go build -o bin/quickstart ./examples/quickstart
//	go run ./internal/lab/record -o docs/pictures/quickstart.svg -bad killed \
//	  -good 'was granted|as promised' -title 'go run ./examples/quickstart' bin/quickstart
//
// A viewer that wants no motion, or knows none, sees all lines at once.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

func main() {
	var p picture
	out := flag.String("o", "", "the SVG file")
	flag.StringVar(&p.title, "title", "", "what is shown as the command")
	bad := flag.String("bad", "", "regular expression of lines in red")
	good := flag.String("good", "", "regular expression of lines in green")
	flag.Parse()
	if err := run(&p, *bad, *good, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(p *picture, bad, good, out string, args []string) (err error) {
	if len(args) == 0 || out == "" {
		return fmt.Errorf("want -o FILE and a command")
	}
	for _, each := range []struct {
		text string
		to   **regexp.Regexp
	}{{bad, &p.bad}, {good, &p.good}} {
		if each.text == "" {
			continue
		}
		if *each.to, err = regexp.Compile(each.text); err != nil {
			return err
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		fmt.Println(lines.Text())
		p.lines = append(p.lines, line{time.Since(began), lines.Text()})
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%v: %w", cmd, err)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := p.write(f); err != nil {
		return err
	}
	return f.Close()
}

type line struct {
	at   time.Duration
	text string
}

// picture is what a command has printed.
type picture struct {
	title     string
	bad, good *regexp.Regexp // nil matches no line
	lines     []line
}

const (
	lineHeight = 18              // in pixels
	charWidth  = 7.8             // of the monospaced font, in pixels, at most
	margin     = 14              // in pixels
	rest       = 4 * time.Second // before the picture begins again
)

func (p *picture) write(to io.Writer) error {
	all := append([]line{{0, "$ " + p.title}}, p.lines...)
	for len(all) > 0 && strings.TrimSpace(all[len(all)-1].text) == "" {
		all = all[:len(all)-1]
	}
	widest := 0
	for _, l := range all {
		widest = max(widest, len([]rune(l.text)))
	}
	total := all[len(all)-1].at + rest
	width, height := int(float64(widest)*charWidth)+2*margin, len(all)*lineHeight+2*margin
	var style, body strings.Builder
	for i, l := range all {
		if strings.TrimSpace(l.text) == "" {
			continue
		}
		part := 100 * l.at.Seconds() / total.Seconds()
		fmt.Fprintf(&style, "@keyframes l%d{0%%,%.2f%%{opacity:0}%.2f%%,100%%{opacity:1}}\n.l%d{animation-name:l%d}\n", i,
			part, min(part+0.01, 100), i, i)
		fmt.Fprintf(&body, "<text class=\"l%d%s\" x=\"%d\" y=\"%d\">%s</text>\n", i, p.class(i, l.text), margin,
			margin+(i+1)*lineHeight-5, html.EscapeString(l.text))
	}
	_, err := fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>%s</title>
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dae0;white-space:pre}
.command{fill:#8fb8ff}.bad{fill:#ff8f87}.good{fill:#7fd6a4}
@media (prefers-reduced-motion:no-preference){text{animation:%.1fs linear infinite}
%s}
</style>
<rect width="%d" height="%d" rx="8" fill="#17191e"/>
%s</svg>
`, width, height, width, height, html.EscapeString("What "+p.title+" prints"), total.Seconds(), style.String(),
		width, height, body.String())
	return err
}

// class returns the class of a line, in addition to its own.
func (p *picture) class(i int, text string) string {
	switch {
	case i == 0:
		return " command"
	case p.bad != nil && p.bad.MatchString(text):
		return " bad"
	case p.good != nil && p.good.MatchString(text):
		return " good"
	}
	return ""
}
