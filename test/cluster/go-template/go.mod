module chartpilot.example/go-template

go 1.26
