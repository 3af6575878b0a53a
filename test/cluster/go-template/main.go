// Executes templates with Go's text/template: what the tests compare the agent's own engine with.
//
// Reads a request a line, {"template": text, "data": JSON}, and writes a response a line: {"output": base64} or
// {"error": text}. With "injection": true the data are those of the injector (injection.go). Integers of the data are of type int, other numbers float64; an object {"$struct": {...}} is a struct.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"text/template"
)

type request struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
	// The data are those of the injector, with sprig's functions.
	Injection bool `json:"injection"`
}

type response struct {
	Output []byte `json:"output"`
	Error  string `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	responses := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		output, err := execute(lines.Bytes())
		result := response{Output: output}
		if err != nil {
			result = response{Error: err.Error()}
		}
		if err := responses.Encode(result); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func execute(line []byte) ([]byte, error) {
	var wanted request
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	if wanted.Injection {
		return executeInjection(wanted.Template, wanted.Data)
	}
	decoder := json.NewDecoder(bytes.NewReader(wanted.Data))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	parsed, err := template.New("bootstrap").Parse(wanted.Template)
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	err = parsed.Execute(&output, valueOf(data))
	return output.Bytes(), err
}

func valueOf(data any) any {
	switch value := data.(type) {
	case json.Number:
		if whole, err := strconv.Atoi(value.String()); err == nil {
			return whole
		}
		fraction, _ := value.Float64()
		return fraction
	case []any:
		for i := range value {
			value[i] = valueOf(value[i])
		}
	case map[string]any:
		if fields, ok := value["$struct"].(map[string]any); ok {
			return structOf(fields)
		}
		for key := range value {
			value[key] = valueOf(value[key])
		}
	}
	return data
}

func structOf(fields map[string]any) any {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	var types []reflect.StructField
	var values []any
	for _, name := range names {
		value := valueOf(fields[name])
		types = append(types, reflect.StructField{Name: name, Type: reflect.TypeOf(value)})
		values = append(values, value)
	}
	result := reflect.New(reflect.StructOf(types)).Elem()
	for i, value := range values {
		result.Field(i).Set(reflect.ValueOf(value))
	}
	return result.Interface()
}
