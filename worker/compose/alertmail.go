package compose

// alertSubject and alertText are the mail about an alert where the [[effect]]
// has none of its own.
var (
	alertSubject = Template{"the subject for alerts",
		`[paidonce] {{if eq .Alert.State "resolved"}}Resolved: {{else if eq .Alert.State "reminder"}}Still: {{end}}{{line .Alert.Summary}}`}
	alertText = Template{"the text for alerts", `{{.Alert.Summary}}
{{range .Alert.Items}}
- {{with .Order}}order {{.}}, {{end}}{{with .Event}}event {{.}}, {{end}}{{with .Effect}}effect {{.}}, {{end}}{{with .Amount}}{{.}}, {{end}}{{.At}}
  {{.Text}}{{end}}{{with .More}}
- and {{.}} more{{end}}
{{with .Alert.Next}}
What happens if nobody does anything:
  {{.}}
{{end}}{{with .Alert.Command}}
What to run:
  {{.}}
{{end}}
-- 
alert {{.Alert.Name}}, {{.Alert.State}}, since {{.Alert.Since}}
`}
)
