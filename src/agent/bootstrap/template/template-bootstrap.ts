import { type FieldViolation, malformedValue, wrongType } from '../../../model/fields/violation.ts';
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
  builtInBootstrap: object,
  { errors, warnings }: BootstrapFindings,
): object {
  let renderedText: string;
  try {
    const values = templateValues(facts, builtInBootstrap, (name, { line, column }) =>
      warnings.push({
        event: 'option.ignored',
        setting: `${path}:${line}:${column}`,
        value: name,
        reason: 'unknown value in a condition, taken as false',
      }),
    );
    renderedText = renderTemplate(text, values, templateFunctions);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const { line, column } = error;
    errors.addConfigError({ source: path, line, column }, malformedValue(error.message));
    return {};
  }
  const parsedBootstrap = readObject(renderedText);
  if ('value' in parsedBootstrap) return parsedBootstrap.value;
  errors.addConfigError(path, parsedBootstrap.violation);
  return {};
}

function readObject(text: string): { readonly value: object } | { readonly violation: FieldViolation } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{'))
      return { violation: malformedValue(`output is not JSON: ${messageOf(error)}`) };
    const document = parseYamlDocument({ text, line: 1 });
    const [firstError] = document.errors;
    if (firstError !== undefined) {
      return { violation: malformedValue(`output is not YAML: line ${firstError.line} of it: ${firstError.message}`) };
    }
    value = document.value;
  }
  return isObject(value) ? { value } : { violation: wrongType('an object as output', value) };
}
