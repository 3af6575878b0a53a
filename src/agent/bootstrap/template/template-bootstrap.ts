import { type FieldViolation, malformed, wrongType } from '../../../model/fields/violation.ts';
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
    const { line, column } = error;
    errors.config({ source: path, line, column }, malformed(error.message));
    return {};
  }
  const read = readObject(rendered);
  if ('value' in read) return read.value;
  errors.config(path, read.violation);
  return {};
}

function readObject(text: string): { readonly value: object } | { readonly violation: FieldViolation } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) return { violation: malformed(`output is not JSON: ${messageOf(error)}`) };
    const document = parseYamlDocument({ text, line: 1 });
    const [firstError] = document.errors;
    if (firstError !== undefined) {
      return { violation: malformed(`output is not YAML: line ${firstError.line} of it: ${firstError.message}`) };
    }
    value = document.value;
  }
  return isObject(value) ? { value } : { violation: wrongType('an object as output', value) };
}
