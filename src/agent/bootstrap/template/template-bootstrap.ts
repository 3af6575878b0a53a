/** A bootstrap of somebody's own template (spec/agent.md §4.2): the same values, another shape. */
import { parseYamlDocument } from '../../../model/yaml/yaml-document.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { isObject } from '../../../runtime/json-object.ts';
import type { BootstrapTemplate } from '../../options/bootstrap-template.ts';
import type { BootstrapFacts, BootstrapFindings } from '../bootstrap.ts';
import { renderTemplate } from './render-template.ts';
import { TemplateMistake } from './template-syntax.ts';
import { templateValues } from './template-values.ts';

/** @returns an empty object where the template has mistakes, which go to `errors` with their lines */
export function templateBootstrap(
  { path, text }: BootstrapTemplate,
  facts: BootstrapFacts,
  builtIn: object,
  { errors, warnings }: BootstrapFindings,
): object {
  const unknown = new Set<string>();
  let rendered: string;
  try {
    rendered = renderTemplate(text, templateValues(facts, builtIn), (name) => unknown.add(name));
  } catch (error) {
    if (!(error instanceof TemplateMistake)) throw error;
    errors.config(`${path}, line ${error.line}: ${error.message}`);
    return {};
  }
  if (unknown.size > 0)
    warnings.push(`${path} asks for what is not known here, and is empty: ${[...unknown].join(', ')}`);
  const read = readObject(rendered);
  if (typeof read !== 'string') return read;
  errors.config(`${path}: what comes of it ${read}`);
  return {};
}

/** JSON or YAML; a text says what is wrong. */
function readObject(text: string): object | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (text.trimStart().startsWith('{')) return `is no JSON: ${messageOf(error)}`;
    const document = parseYamlDocument({ text, line: 1 });
    const [broken] = document.errors;
    if (broken !== undefined) return `is no YAML: line ${broken.line}: ${broken.message}`;
    value = document.value;
  }
  return isObject(value) ? value : 'is no object';
}
