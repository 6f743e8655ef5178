package leftover

// variable is inherited by all processes that the tests start. Its value is the ID of the process
// of the tests. The name does not begin with MORTISE_: mortise refuses unknown variables of that
// kind, and some tests keep them from the processes that they start.
const variable = "TESTS_OF_MORTISE_PROCESS"

// process is one that is left.
type process struct {
	id      int
	command string
}
