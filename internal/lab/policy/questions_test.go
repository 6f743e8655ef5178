package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// minQuestions is the number of questions that testdata/questions.txt must have.
const minQuestions = 60

var (
	pageLink     = regexp.MustCompile(`\]\([^)\s]*\)`)
	emphasis     = strings.NewReplacer("`", "", "**", "", "[", "")
	wordBegins   = regexp.MustCompile(`^\w`)
	wordEnds     = regexp.MustCompile(`\w$`)
	goesOnBefore = regexp.MustCompile(`(\w|\d[.,])$`)
	goesOnAfter  = regexp.MustCompile(`^(\w|[.,]\d)`)
)

// sectionOf returns the text below the first heading with the anchor, up to the next heading of any
// level, and whether the page has such a heading. A heading inside a block of code is none.
func sectionOf(page, anchor string) (string, bool) {
	var section strings.Builder
	inside, block := false, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			block = !block
		}
		if !block && heading.MatchString(line) {
			if inside {
				break
			}
			inside = anchors(line)[anchor]
			continue
		}
		if inside {
			section.WriteString(line)
		}
	}
	return section.String(), inside
}

// plainText returns a text without the marks of Markdown, and with single spaces.
func plainText(text string) string {
	return strings.Join(strings.Fields(emphasis.Replace(pageLink.ReplaceAllString(text, ""))), " ")
}

// hasWords reports whether a plain text contains the words, in letters of either case. "5 s" is not
// a part of "15 s", and 24 is none of 1,024.
func hasWords(text, words string) bool {
	text, words = strings.ToLower(text), strings.ToLower(words)
	for from := 0; ; from++ {
		at := strings.Index(text[from:], words)
		if at < 0 {
			return false
		}
		from += at
		end := from + len(words)
		if !(wordBegins.MatchString(words) && goesOnBefore.MatchString(text[:from])) &&
			!(wordEnds.MatchString(words) && goesOnAfter.MatchString(text[end:])) {
			return true
		}
	}
}

// questionFaults returns the questions whose section is missing or lacks words of the answer. A
// line of the list has a question, a page with an anchor, and the words, which are separated by
// semicolons. It also returns the number of questions. The function read returns a page.
func questionFaults(list string, read func(name string) (string, error)) (faults []string, count int) {
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		count++
		parts := strings.Split(line, " | ")
		if len(parts) != 3 || !strings.HasSuffix(parts[0], "?") || !strings.Contains(parts[1], "#") ||
			strings.TrimSpace(parts[2]) == "" {
			faults = append(faults, fmt.Sprintf("%q is not a question, a section and words", line))
			continue
		}
		name, anchor, _ := strings.Cut(parts[1], "#")
		page, err := read(name)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", parts[0], err))
			continue
		}
		section, found := sectionOf(page, anchor)
		if !found {
			faults = append(faults, fmt.Sprintf("%s: %s has no heading #%s", parts[0], name, anchor))
			continue
		}
		text := plainText(section)
		for words := range strings.SplitSeq(parts[2], ";") {
			if words = strings.TrimSpace(words); words == "" || !hasWords(text, words) {
				faults = append(faults, fmt.Sprintf("%s: the section %s does not contain %q", parts[0], parts[1], words))
			}
		}
	}
	return faults, count
}

// The pages may become shorter, and a reader must still find the answer to each question of
// testdata/questions.txt in the section where it is sought.
func TestQuestionsFindTheirAnswers(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("testdata", "questions.txt"))
	if err != nil {
		t.Fatal(err)
	}
	faults, count := questionFaults(string(list), func(name string) (string, error) {
		page, err := os.ReadFile(filepath.Join(root, name))
		return string(page), err
	})
	for _, fault := range faults {
		t.Errorf("%s: put the answer back, or name its new section in internal/lab/policy/testdata/questions.txt", fault)
	}
	if count < minQuestions {
		t.Errorf("the list has %d questions, fewer than %d", count, minQuestions)
	}

	page := "# Doors\n\nA door.\n\n## Its `Lock`\n\nIt closes after **5 s** with\n" +
		"[a key](x.md#y), `K{}`, or 1,024 of them.\n\n" +
		"```sh\n# not a heading\n```\n\nOpen it.\n\n### Hinges\n\nTwo.\n"
	const right = "When does it close? | doors.md#its-lock | 5 S; a key, K{}; 1,024 of them; open it"
	made := func(line, page string) []string {
		faults, _ := questionFaults(line+"\n", func(name string) (string, error) {
			if name != "doors.md" {
				return "", os.ErrNotExist
			}
			return page, nil
		})
		return faults
	}
	t.Run("a section with its answer", func(t *testing.T) {
		if faults := made(right, page); len(faults) > 0 {
			t.Error(faults)
		}
	})
	for what, change := range map[string][2]string{
		"a figure that has changed":        {"5 s", "15 s"},
		"a figure with another beginning":  {"1,024", "11,024"},
		"a figure with another end":        {"1,024", "1,0245"},
		"a sentence that is gone":          {"Open it.", ""},
		"an answer that has moved":         {"Open it.\n\n### Hinges\n", "### Hinges\n\nOpen it.\n"},
		"a heading that has another name":  {"## Its `Lock`", "## Locks"},
		"a heading that is inside of code": {"## Its `Lock`", "```\n## Its `Lock`\n```"},
	} {
		t.Run(what, func(t *testing.T) {
			if faults := made(right, strings.Replace(page, change[0], change[1], 1)); len(faults) == 0 {
				t.Error("the rule does not see it")
			}
		})
	}
	for what, line := range map[string]string{
		"a page that is not there":     "When? | windows.md#its-lock | 5 s",
		"a question without words":     "When? | doors.md#its-lock | ",
		"a question without a section": "When? | doors.md | 5 s",
		"words that are empty":         "When? | doors.md#its-lock | 5 s; ;open",
	} {
		t.Run(what, func(t *testing.T) {
			if faults := made(line, page); len(faults) != 1 {
				t.Errorf("%q", faults)
			}
		})
	}
}
