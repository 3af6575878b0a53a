/** A bootstrap of a custom template (spec/agent.md §4.2): the same values, another shape. */
import { parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { renderTemplate } from '../../../runtime/go-template/render-template.ts';
import { TemplateError } from '../../../runtime/go-template/template-error.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { BootstrapTemplate } from '../../options/bootstrap-template.ts';
import type { BootstrapFacts, BootstrapFindings } from '../bootstrap.ts';
import { templateFunctions } from './template-functions.ts';
import { templateValues } from './template-values.ts';

/** @returns an empty object if the template is invalid; its errors go to `errors`, with line and column */
export function templateBootstrap(
  { path, text }: BootstrapTemplate,
  facts: BootstrapFacts,
  builtIn: object,
  { errors, warnings }: BootstrapFindings,
): object {
  let rendered: string;
  try {
    const values = templateValues(facts, builtIn, (name, { line, column }) =>
      warnings.push({
        event: 'option.ignored',
        setting: `${path}:${line}:${column}`,
        value: name,
        reason: 'unknown value in a condition, taken as false',
      }),
    );
    rendered = renderTemplate(text, values, templateFunctions);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    errors.config(`${path}:${error.line}:${error.column}: ${error.message}`);
    return {};
  }
  const read = readObject(rendered);
  if (typeof read !== 'string') return read;
  errors.config(`${path}: its output ${read}`);
  return {};
}

/** JSON or YAML; a text says what is wrong. */
function readObject(text: string): object | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) return `is not JSON: ${messageOf(error)}`;
    const document = parseYamlDocument({ text, line: 1 });
    const [broken] = document.errors;
    if (broken !== undefined) return `is not YAML: line ${broken.line}: ${broken.message}`;
    value = document.value;
  }
  return isObject(value) ? value : 'is not an object';
}
