import { Execution } from './evaluate.ts';
import { goFunctions, type TemplateFunction } from './functions.ts';
import { parseTemplate } from './parser.ts';
import type { GoValue } from './values.ts';

/**
 * @param data value of `.` and `$`
 * @param functions in addition to those of Go
 * @throws TemplateError with line and column
 */
export function renderTemplate(
  template: string,
  data: GoValue,
  functions: ReadonlyMap<string, TemplateFunction> = new Map(),
): string {
  const functionsByName = new Map([...goFunctions, ...functions]);
  const templates = parseTemplate(template, (name) => functionsByName.has(name));
  return new Execution(templates, functionsByName).run(data);
}
