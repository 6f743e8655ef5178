package main

import "os"

// verdict prints the first word of a finding. On a terminal with colours the word is green or red.
func (c *call) verdict(well bool) {
	text, colour := "trouble:", "31"
	if well {
		text, colour = "well:", "32"
	}
	if c.colours() {
		text = "\x1b[1;" + colour + "m" + text + "\x1b[m"
	}
	_, _ = c.out.Write([]byte(text + " "))
}

// colours reports whether the output is a terminal that supports colours and NO_COLOR is not set
// (https://no-color.org).
func (c *call) colours() bool {
	return isTerminal(c.out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
