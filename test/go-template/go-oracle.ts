/** Renders templates with Go's text/template. */
import { spawnSync } from 'node:child_process';
import { findOrBuild, goTemplate } from '../cluster/go-program.ts';

export interface TemplateCase {
  readonly template: string;
  /** Integers have Go's type int; `{$struct: {…}}` is a struct. */
  readonly data: unknown;
  /** The data are those of the injector, and sprig's functions are defined. */
  readonly injection?: true;
}

/** Output, or the error of Go. */
export type Rendered = { readonly output: string } | { readonly error: string };

export async function renderWithGo(cases: readonly TemplateCase[]): Promise<Rendered[]> {
  const binary = await findOrBuild(goTemplate, () => {});
  const input = cases.map((one) => `${JSON.stringify(one)}\n`).join('');
  const { status, stdout, stderr } = spawnSync(binary, { input, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  if (status !== 0) throw new Error(`the Go program failed: ${stderr}`);
  const lines = stdout.trimEnd().split('\n');
  if (lines.length !== cases.length) throw new Error(`${cases.length} templates, ${lines.length} results`);
  return lines.map((line) => {
    const { output, error } = JSON.parse(line) as { output: string | null; error?: string };
    return error === undefined ? { output: Buffer.from(output ?? '', 'base64').toString() } : { error };
  });
}
