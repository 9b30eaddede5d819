package cli

import "regexp"

// secretWords are in the names of settings and of header fields whose values others must not see.
const secretWords = `(?:authorization|cookie|token|secret|passw|key)`

var (
	secretName   = regexp.MustCompile(`(?i)` + secretWords)
	secretValues = []*regexp.Regexp{
		regexp.MustCompile(`(?i)((?:^|[^\w/.@-])[\w-]*` + secretWords + `[\w-]*["']?:\s*).*`), // a header field or a key of JSON, and no host
		regexp.MustCompile(`(?i)(\b\w*` + secretWords + `\w*=)(?:"[^"]*"|'[^']*'|\S+)`),       // a setting, or a parameter of a query
		regexp.MustCompile(`(://[^/@\s:]*:)[^/\s]+(@)`),                                       // a password in a URL
	}
)

// IsSecret reports whether the value of a setting or a header field of that name is secret.
func IsSecret(name string) bool { return secretName.MatchString(name) }

// MaskSecrets is a word of a command line without the values of settings, header fields and
// parameters that are secret by their names, and without passwords in URLs.
func MaskSecrets(word string) string {
	for _, value := range secretValues {
		word = value.ReplaceAllString(word, "${1}…${2}")
	}
	return word
}
