package main

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// rendered is a page as HTML, with its sections for the navigation and the search.
type rendered struct {
	page
	title    string
	body     template.HTML
	sections []section
}

// section is a heading with the text below it, up to the next heading.
type section struct {
	level         int
	anchor, title string
	text          string
}

// deepest is the level of the deepest headings that have sections of their own. Paragraphs that
// begin in bold are one level deeper.
const deepest = 3

// render converts one page.
func render(p page, l *links) (rendered, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(diagrams{}, 100))))
	document := markdown.Parser().Parse(text.NewReader(p.text))
	r := rendered{page: p, title: strings.TrimSuffix(p.file, ".html")}
	if err := r.read(document, l); err != nil {
		return r, err
	}
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, p.text, document); err != nil {
		return r, fmt.Errorf("%s: %w", p.source, err)
	}
	r.body = template.HTML(out.String()) // goldmark leaves out raw HTML
	return r, nil
}

// read gives each heading its anchor, rewrites the links, and collects the sections.
func (r *rendered) read(document ast.Node, l *links) error {
	taken := map[string]int{}
	var words strings.Builder
	end := func() {
		if len(r.sections) > 0 {
			r.sections[len(r.sections)-1].text = strings.Join(strings.Fields(words.String()), " ")
		}
		words.Reset()
	}
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				words.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			title := textOf(n, r.text)
			anchor := unique(anchorOf(title), taken)
			n.SetAttributeString("id", []byte(anchor))
			if n.Level == 1 && len(r.sections) == 0 {
				r.title = title
			}
			if n.Level <= deepest {
				end()
				r.sections = append(r.sections, section{level: n.Level, anchor: anchor, title: title})
			}
		case *ast.Paragraph:
			// A paragraph of the page that begins in bold is a section of its own for the search.
			bold, is := n.FirstChild().(*ast.Emphasis)
			if is && bold.Level == 2 && n.Parent() == document && len(r.sections) > 0 {
				title := strings.TrimRight(textOf(bold, r.text), ".:")
				anchor := unique(anchorOf(title), taken)
				n.SetAttributeString("id", []byte(anchor))
				end()
				r.sections = append(r.sections, section{level: deepest + 1, anchor: anchor, title: title})
			}
		case *ast.Link:
			to, err := l.rewrite(r.page, string(n.Destination), false)
			n.Destination = []byte(to)
			return ast.WalkContinue, err
		case *ast.Image:
			to, err := l.rewrite(r.page, string(n.Destination), true)
			n.Destination = []byte(to)
			return ast.WalkContinue, err
		case *ast.Text:
			words.Write(n.Segment.Value(r.text))
			if n.SoftLineBreak() || n.HardLineBreak() {
				words.WriteByte(' ')
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			words.Write(n.Lines().Value(r.text))
		}
		return ast.WalkContinue, nil
	})
	end()
	return err
}

// textOf returns the text of a node, without marks.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// anchorOf returns the anchor of a heading, as GitHub derives it.
func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// unique returns the anchor with a number behind it, if another heading of the page has it.
func unique(anchor string, taken map[string]int) string {
	count := taken[anchor]
	taken[anchor]++
	if count == 0 {
		return anchor
	}
	return fmt.Sprintf("%s-%d", anchor, count)
}

// breakable finds the places in a path or a name at which a narrow cell may break it.
var breakable = regexp.MustCompile(`([/.])([A-Za-z])`)

// diagrams renders code that can be broken in cells, and the fenced blocks: sequences of Mermaid as
// pictures, its graphs as lists, and everything else as code.
type diagrams struct{}

func (diagrams) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindCodeSpan, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (
		ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		code := template.HTMLEscapeString(strings.ReplaceAll(textOf(node, source), "\n", " "))
		_, err := w.WriteString("<code>" + breakable.ReplaceAllString(code, "$1<wbr>$2") + "</code>")
		return ast.WalkSkipChildren, err
	})
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (
		ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		block := node.(*ast.FencedCodeBlock)
		code, language := string(block.Lines().Value(source)), string(block.Language(source))
		if language == "mermaid" {
			if picture, drawn := drawSequence(code); drawn {
				_, err := w.WriteString(picture)
				return ast.WalkSkipChildren, err
			}
			if list, listed := listGraph(code); listed {
				_, err := w.WriteString(list)
				return ast.WalkSkipChildren, err
			}
			_, _ = w.WriteString(`<p class="note">A diagram in the notation of Mermaid:</p>` + "\n")
		}
		_, _ = w.WriteString("<pre tabindex=\"0\"><code>")
		html.DefaultWriter.RawWrite(w, []byte(code))
		_, err := w.WriteString("</code></pre>\n")
		return ast.WalkSkipChildren, err
	})
}
