import { describe, expect, test } from 'vitest';
import { renderTemplate } from './render-template.ts';
import { TemplateError } from './template-error.ts';
import { type GoValue, goValueOf } from './values.ts';

const data = goValueOf({
  a: 'x',
  b: '',
  list: ['p', 'q'],
  map: { z: 1, b: 2 },
  no: '',
  zero: 0,
  port: 15000,
  ratio: 2.5,
});
const rendered = (template: string): string => renderTemplate(template, data);

describe('renderTemplate renders a Go template', () => {
  test.each([
    ['text without actions', '{"a": 1}', '{"a": 1}'],
    ['fields, also of a missing key', '{{ .a }}{{.map.z}}[{{ .none.deep }}]', 'x1[<no value>]'],
    [
      'adjacent arguments',
      '{{or .b .a}} {{eq .a "x"}} {{printf "%s-%d" .a .port}} {{and .a .b .port}}',
      'x true x-15000 ',
    ],
    ['trim marks', 'a \n {{- .a -}} \n b', 'axb'],
    ['comments', 'a{{/* {{ no }} */}}b {{- /* c */ -}} d', 'abd'],
    ['if, else if, else', '{{ if .no }}1{{ else if eq .a "x" }}2{{ else }}3{{ end }}', '2'],
    ['false values', '{{ if or .zero .no .none (len .no) }}1{{ else }}2{{ end }}', '2'],
    ['range with index and element', '{{ range $i, $v := .list }}{{ if $i }},{{ end }}{{ $v }}{{ end }}', 'p,q'],
    ['range over a map, in the order of its keys', '{{ range $k, $v := .map }}{{ $k }}{{ $v }}{{ end }}', 'b2z1'],
    [
      'range over an integer, with break and continue',
      '{{ range $i := 9 }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ if gt $i 3 }}{{ break }}{{ end }}{{ $i }}{{ end }}',
      '023',
    ],
    ['range over nothing', '{{ range .none }}1{{ else }}2{{ end }}', '2'],
    ['with, else with, and $ for the data', '{{ with .no }}1{{ else with .map }}{{ .z }}{{ $.a }}{{ end }}', '1x'],
    ['variables that a block sets', '{{ $v := 1 }}{{ if true }}{{ $v = 2 }}{{ end }}{{ $v }}', '2'],
    ['pipelines and parentheses', '{{ (index .list 1) | printf "%s-%q" "a" }} {{ (.map).z }}', 'a-"q" 1'],
    [
      'define, template and block',
      '{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" .a }}{{ block "u" .port }}[{{ . }}]{{ end }}',
      '<x>[15000]',
    ],
    [
      'literals',
      '{{ print "a\\u00e9" `\\n` }} {{ 0x1F }} {{ 1_000 }} {{ \'a\' }} {{ 1.50 }} {{ print nil }}',
      'aé\\n 31 1000 97 1.5 <nil>',
    ],
    ['strings with braces', '{{ print "}}" `{{` }}', '}}{{'],
    [
      'functions of text',
      `{{ html "<'" }} {{ js "it's" }} {{ urlquery "a b/c" }} {{ println 1 2 }}`,
      "&lt;&#39; it\\'s a+b%2Fc 1 2\n",
    ],
    ['slices of texts and lists', '{{ slice .a 0 1 }}{{ slice .list 1 }}{{ index .map "z" }}{{ len "é" }}', 'x[q]12'],
  ])('%s', (_, template, expected) => {
    expect(rendered(template)).toBe(expected);
  });
});

describe('renderTemplate reports an error with line and column', () => {
  test.each([
    ['{{ .a', 1, 1, /not closed with \}\}/],
    ['\n {{ if .a }}', 2, 5, /\{\{if\}\} is not closed/],
    ['a\n\n{{ end }}', 3, 4, /unexpected \{\{end\}\}/],
    ['{{ nothing .a }}', 1, 4, /there is no function "nothing"/],
    ['{{ constructor }}', 1, 4, /there is no function "constructor"/],
    ['{{ .a | .b }}', 1, 9, /\.b is not a function/],
    ['{{ .a | "b" }}', 1, 9, /stage 2 of the pipeline, after \|, must be a function/],
    ['{{ $v }}', 1, 4, /undefined variable "\$v"/],
    ['{{ ! }}', 1, 4, /unexpected character "!"/],
    ['{{ or"a""b" }}', 1, 4, /bad character/],
    ['{{ print "a""b" }}', 1, 13, /expected a space, got/],
    ['{{ eq .a 1 }}', 1, 4, /incompatible types for comparison: string and int/],
    ['{{ .a.b }}', 1, 4, /field "b" of a value of type string/],
    ['x\n{{ index .list 7 }}', 2, 4, /index out of range: 7/],
    ['{{ ne .a }}', 1, 4, /wrong number of arguments for ne: expected 2, got 1/],
    ['{{ printf "%x" .ratio }}', 1, 4, /%x of a float64 is not supported/],
    ['{{ break }}', 1, 4, /outside \{\{range\}\}/],
    ['{{ template "none" }}', 1, 4, /template "none" is not defined/],
  ])('%s', (template, line, column, message) => {
    expect(errorOf(template)).toMatchObject({ line, column, message: expect.stringMatching(message) });
  });
});

describe('renderTemplate with excessive input', () => {
  test.each([
    ['nested blocks', '{{ if .a }}'.repeat(200), /more than 100 blocks or parentheses/],
    ['nested parentheses', `{{ ${'('.repeat(5000)} }}`, /not closed|more than 100 blocks or parentheses/],
    ['the output', `{{ range 5 }}${'x'.repeat(1_000_000)}{{ end }}`, /more than 4194304 characters/],
    ['steps', '{{ range 1000000000 }}{{ end }}', /more than 1000000 steps/],
    [
      'recursion',
      '{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}',
      /more than 200 templates call one another/,
    ],
    ['widths', '{{ printf "%2000000d" 1 | len }}', /^$/],
  ])('limits %s', (title, template, message) => {
    if (title === 'widths') expect(Number(rendered(template))).toBeLessThan(100);
    else expect(errorOf(template).message).toMatch(message);
  });
});

function errorOf(template: string): TemplateError {
  try {
    rendered(template);
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  throw new Error(`rendered ${template}`);
}

test.each([
  [
    'a text that is doubled repeatedly',
    '{{$x := "ab"}}{{range 64}}{{$x = printf "%s%s" $x $x}}{{end}}',
    'functions handle more',
  ],
  ['nested lists', '{{$x := slice .l}}{{range 64}}{{$x = pair $x $x}}{{end}}{{print $x}}', 'functions handle more'],
  ['widths of a format', `{{printf "${'%999999[1]d'.repeat(1_000)}" 1}}`, 'the result has more'],
  ['an endless loop', '{{range 100000000000}}{{end}}{{range 100000000000}}{{"x"}}{{end}}', 'steps'],
  ['endless output', '{{range 1000000}}{{"0123456789"}}{{end}}', 'the output has more'],
  ['templates that call themselves', '{{define "a"}}{{template "a"}}{{end}}{{template "a"}}', 'call one another'],
])('renderTemplate fails with the line of the error within a second for %s', (_, template, message) => {
  const pair = { min: 2, max: 2, call: (values: readonly GoValue[]) => [...values] };
  const startUsage = process.cpuUsage();
  const render = (): string => renderTemplate(`\n${template}`, goValueOf({ l: ['x'] }), new Map([['pair', pair]]));
  expect(render).toThrow(message);
  try {
    render();
  } catch (error) {
    expect(error).toMatchObject({ line: 2 });
  }
  expect(process.cpuUsage(startUsage).user / 1_000).toBeLessThan(2_000);
});
