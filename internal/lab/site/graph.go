package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// graph is a flowchart or a state diagram of Mermaid: boxes and the arrows between them.
type graph struct {
	titles map[string]string // by the name of a box
	order  []string          // the boxes that arrows leave, in the order of the text
	arrows map[string][]leads
}

// leads is where an arrow leads, and its label, which may be empty.
type leads struct{ to, label string }

var (
	graphHead  = regexp.MustCompile(`^(?:flowchart \w+|stateDiagram-v2)$`)
	graphArrow = regexp.MustCompile(`^(\[\*\]|\w+)(?:\["?(.*?)"?\])? (?:-->|-\.->)(?:\|(.*?)\|)? ` +
		`(\[\*\]|\w+)(?:\["?(.*?)"?\])?(?:: (.*))?$`)
	graphBox = regexp.MustCompile(`^(\w+)\["?(.*?)"?\]$`)
)

// parseGraph reads a diagram. It returns false if the diagram is of another kind, or has a line
// that this package does not know.
func parseGraph(code string) (g graph, ok bool) {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	if !graphHead.MatchString(strings.TrimSpace(lines[0])) {
		return g, false
	}
	g = graph{titles: map[string]string{"[*]": "the beginning"}, arrows: map[string][]leads{}}
	name := func(box, title string) {
		if title != "" {
			g.titles[box] = strings.ReplaceAll(title, "<br>", ": ")
		} else if g.titles[box] == "" {
			g.titles[box] = box
		}
	}
	for _, line := range lines[1:] {
		line = strings.TrimSpace(line)
		if m := graphArrow.FindStringSubmatch(line); m != nil {
			name(m[1], m[2])
			name(m[4], m[5])
			if len(g.arrows[m[1]]) == 0 {
				g.order = append(g.order, m[1])
			}
			g.arrows[m[1]] = append(g.arrows[m[1]], leads{to: m[4], label: m[3] + m[6]})
		} else if m := graphBox.FindStringSubmatch(line); m != nil {
			name(m[1], m[2])
		} else if line != "" {
			return g, false
		}
	}
	return g, len(g.order) > 0
}

// listGraph returns a graph as a list: each box with those to which its arrows lead. It returns
// false for other diagrams.
func listGraph(code string) (string, bool) {
	g, ok := parseGraph(code)
	if !ok {
		return "", false
	}
	var b strings.Builder
	b.WriteString("<ul class=\"graph\">\n")
	for _, from := range g.order {
		var to []string
		for _, l := range g.arrows[from] {
			text := html.EscapeString(short(g.titles[l.to]))
			if l.label != "" {
				text += " (" + html.EscapeString(l.label) + ")"
			}
			to = append(to, text)
		}
		fmt.Fprintf(&b, "<li><strong>%s</strong> → %s</li>\n", html.EscapeString(g.titles[from]), strings.Join(to, "; "))
	}
	b.WriteString("</ul>\n")
	return b.String(), true
}

// short returns the name of a box without what is said of it.
func short(title string) string {
	name, _, _ := strings.Cut(title, ": ")
	return name
}
