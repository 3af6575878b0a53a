/** Parses the subset of mermaid sequence diagrams that sequence contracts use (`docs/sequence-diagrams.md`). */
import { ChartpilotError, type ErrorFields } from '../../runtime/errors.ts';
import type { Diagram, DiagramArrow, Fragment, Interruption, Participant } from './diagram.ts';
import { anyNamePattern, type NamePattern, namePattern } from './name-pattern.ts';

const id = String.raw`\w(?:[\w./-]*\w)?`;
const name = String.raw`\w(?:[\w./+-]*\w)?`;
const arrowLine = new RegExp(String.raw`^(${id})\s*(?:-->>|->>|-->|->|-\))\s*(${id})\s*:\s*(.*)$`);
const participantLine = new RegExp(String.raw`^(?:participant|actor)\s+(${id})(?:\s+as\s+(.+))?$`);
const noteLine = new RegExp(String.raw`^note\s+(?:(?:left|right)\s+of|over)\s+(${id})(?:\s*,\s*(${id}))?\s*:.*$`, 'i');
const openingLine = /^(alt|opt|loop|par)(?:\s.*)?$/;
const dividerLine = /^(else|and)(?:\s.*)?$/;
const interruption = new RegExp(String.raw`^(\*|${name})\s*(?:-->>|->>|-->|->|-\))\s*(\*|${name})\s*:\s*(.*)$`);
const interruptionComment = /^%%\s*interrupted by\b:?\s*(.*)$/i;
const eventType = /^[\w-]+(?:\.[\w-]+)+$/;
const supportedSyntax =
  'participant, actor, the arrows ->> -->> -) -> -->, Note, alt/else, opt, loop, par/and, end, autonumber and %% comments';

type BlockKind = 'alt' | 'opt' | 'loop' | 'par';

interface OpenBlock {
  kind: BlockKind | 'diagram';
  line: number;
  branches: Fragment[][];
}

/** @throws ChartpilotError DIAGRAM_INVALID that lists every error of the file */
export function parseDiagram(text: string, file: string): Diagram {
  return new DiagramParser(text.split(/\r?\n/), file).parse();
}

class DiagramParser {
  readonly #source: readonly string[];
  readonly #file: string;
  readonly #problems: string[] = [];
  readonly #fields: ErrorFields[] = [];
  readonly #participants = new Map<string, Participant>();
  readonly #interruptions: { line: number; text: string }[] = [];
  readonly #openBlocks: OpenBlock[] = [{ kind: 'diagram', line: 1, branches: [[]] }];
  #hasHeader = false;
  #arrowCount = 0;

  constructor(source: readonly string[], file: string) {
    this.#source = source;
    this.#file = file;
  }

  parse(): Diagram {
    this.#source.forEach((text, i) => {
      this.#parseStatement(text.trim(), i + 1);
    });
    for (const block of this.#openBlocks.slice(1))
      this.#problem(block.line, `missing 'end' of ${block.kind}`, { expected: 'end' });
    if (!this.#hasHeader)
      this.#problem(1, "missing first statement 'sequenceDiagram'", { expected: 'sequenceDiagram' });
    else if (this.#arrowCount === 0 && this.#problems.length === 0)
      this.#problem(1, 'the diagram has no arrows', { expected: 'an arrow' });
    const interruptions = this.#interruptions.flatMap(({ line, text }) => this.#interruption(text, line) ?? []);
    if (this.#problems.length > 0)
      throw new ChartpilotError('DIAGRAM_INVALID', this.#problems.join('\n  '), { fields: this.#fields });
    return {
      file: this.#file,
      source: this.#source,
      participants: [...this.#participants.values()],
      body: sequence(this.#openBlocks[0]!.branches[0]!),
      interruptions,
    };
  }

  #problem(line: number, message: string, fields: Pick<ErrorFields, 'expected' | 'got'>): void {
    this.#problems.push(`${this.#file}:${line}: ${message}`);
    this.#fields.push({ path: this.#file, line, ...fields });
  }

  #parseStatement(text: string, line: number): void {
    if (text === '') return;
    if (text.startsWith('%%')) this.#parseComment(text, line);
    else if (!this.#hasHeader) this.#parseOpening(text, line);
    // Mermaid ends a statement at a semicolon, and would draw or reject the rest as a separate statement.
    else if (text.includes(';'))
      this.#problem(line, `unexpected semicolon, which ends a statement in Mermaid: ${quote(text)}`, { got: ';' });
    else {
      for (const [pattern, parse] of this.#statementParsers) {
        const match = pattern.exec(text);
        if (match === null) continue;
        parse(match, line);
        return;
      }
      this.#problem(line, `unsupported statement ${quote(text)}; supported are ${supportedSyntax}`, { got: text });
    }
  }

  readonly #statementParsers: readonly [RegExp, (match: RegExpExecArray, line: number) => void][] = [
    [/^autonumber(\s+\d+){0,2}$/, () => {}],
    [/^end$/, (_, line) => this.#parseEnd(line)],
    [openingLine, ([, kind], line) => this.#openBlocks.push({ kind: kind as BlockKind, line, branches: [[]] })],
    [dividerLine, ([, keyword], line) => this.#parseDivider(keyword as 'else' | 'and', line)],
    [participantLine, ([, idText, alias], line) => this.#participant(idText!, alias ?? idText!, line)],
    [noteLine, (match, line) => this.#parseNote(match.slice(1), line)],
    [arrowLine, ([, from, to, text], line) => this.#arrow(from!, to!, text!.trim(), line)],
  ];

  #parseOpening(text: string, line: number): void {
    this.#hasHeader = true;
    if (text !== 'sequenceDiagram') {
      this.#problem(line, `expected 'sequenceDiagram' as first statement, got ${quote(text)}`, {
        expected: 'sequenceDiagram',
        got: text,
      });
    }
  }

  #parseNote(participants: readonly (string | undefined)[], line: number): void {
    for (const idText of participants) if (idText !== undefined) this.#declaredName(idText, line);
  }

  #parseComment(text: string, line: number): void {
    const match = interruptionComment.exec(text);
    // Resolved at the end: the line may precede the participants that it names.
    if (match !== null) this.#interruptions.push({ line, text: match[1]! });
  }

  #participant(idText: string, alias: string, line: number): void {
    const pattern = new RegExp(`^${name}(?:-\\*)?$`).test(alias) ? namePattern(alias) : undefined;
    if (this.#participants.has(idText)) this.#problem(line, `participant ${idText} is declared twice`, { got: idText });
    if (pattern === undefined) {
      this.#problem(
        line,
        `invalid actor name ${quote(alias)}; expected a name as in traces, with -N or -N+1 for a number (epoch-N/process)`,
        { expected: 'an actor name', got: alias },
      );
    }
    // The participant is declared despite the error, so that its arrows cause no further errors.
    this.#participants.set(idText, { id: idText, name: pattern ?? anyNamePattern });
  }

  #declaredName(idText: string, line: number): NamePattern | undefined {
    const participant = this.#participants.get(idText);
    if (participant === undefined)
      this.#problem(line, `participant ${idText} is not declared above`, { expected: `participant ${idText}` });
    return participant?.name;
  }

  #arrow(fromId: string, toId: string, text: string, line: number): void {
    this.#arrowCount++;
    const from = this.#declaredName(fromId, line);
    const to = this.#declaredName(toId, line);
    const type = this.#messageType(text, line, fromId === toId);
    if (from === undefined || to === undefined || type === undefined) return;
    const arrow: DiagramArrow = { kind: 'arrow', from, to, type, line };
    this.#openBlocks.at(-1)!.branches.at(-1)!.push(arrow);
  }

  /** Text after the type has no meaning. */
  #messageType(text: string, line: number, isSelfMessage: boolean): string | undefined {
    const [firstWord = '', secondWord = ''] = text.split(/\s+/);
    if (firstWord === 'timer') {
      if (!isSelfMessage) this.#problem(line, 'a timer must be an arrow from an actor to itself', { got: text });
      if (secondWord === '')
        this.#problem(line, "missing name of the delay; expected for example 'timer drainTime'", {
          expected: 'timer NAME',
        });
      return `timer ${secondWord}`;
    }
    if (firstWord === 'spawn' || firstWord === 'done') {
      if (isSelfMessage) {
        this.#problem(
          line,
          `${firstWord} must be an arrow ${firstWord === 'spawn' ? 'from a parent to its child' : 'from a child to its parent'}`,
          { got: firstWord },
        );
      }
      return firstWord;
    }
    if (eventType.test(firstWord)) return firstWord;
    this.#problem(
      line,
      `invalid arrow text; expected an event type (epoch.live), spawn, done or timer NAME, got ${quote(firstWord)}`,
      { expected: 'an event type, spawn, done or timer NAME', got: firstWord },
    );
    return undefined;
  }

  #parseDivider(keyword: 'else' | 'and', line: number): void {
    const block = this.#openBlocks.at(-1)!;
    if (block.kind !== (keyword === 'else' ? 'alt' : 'par')) {
      this.#problem(line, `'${keyword}' outside of ${keyword === 'else' ? 'alt' : 'par'}`, { got: keyword });
    } else block.branches.push([]);
  }

  #parseEnd(line: number): void {
    if (this.#openBlocks.length === 1) {
      this.#problem(line, "'end' without alt, opt, loop or par", { got: 'end' });
      return;
    }
    const block = this.#openBlocks.pop()!;
    if (block.kind === 'alt' && block.branches.length === 1) {
      this.#problem(block.line, 'alt without else; use opt for an optional part', { expected: 'else' });
    }
    this.#openBlocks.at(-1)!.branches.at(-1)!.push(closeBlock(block));
  }

  #interruption(text: string, line: number): Interruption | undefined {
    const match = interruption.exec(text);
    const from = match === null ? undefined : this.#parseInterrupter(match[1]!);
    const to = match === null ? undefined : this.#parseInterrupter(match[2]!);
    if (match === null || from === undefined || to === undefined) {
      this.#problem(line, `expected '%% interrupted by: FROM->>TO: TYPE', got ${quote(text)}`, {
        expected: 'FROM->>TO: TYPE',
        got: text,
      });
      return undefined;
    }
    const messageText = match[3]!.trim();
    const type = /^\*(\s|$)/.test(messageText) ? '*' : this.#messageType(messageText, line, match[1] === match[2]);
    return type === undefined ? undefined : { from, to, type, line };
  }

  /** `text` is the ID of a participant, the name of an actor (which need not be a participant), or `*`. */
  #parseInterrupter(text: string): NamePattern | undefined {
    return text === '*' ? anyNamePattern : (this.#participants.get(text)?.name ?? namePattern(text));
  }
}

function closeBlock(block: OpenBlock): Fragment {
  const branches = block.branches.map(sequence);
  switch (block.kind) {
    case 'alt':
    case 'par':
      return { kind: block.kind, branches };
    case 'opt':
    case 'loop':
      return { kind: block.kind, body: branches[0]! };
    case 'diagram':
      return branches[0]!;
  }
}

function sequence(items: readonly Fragment[]): Fragment {
  return { kind: 'sequence', items };
}

function quote(text: string): string {
  return `'${text.length > 60 ? `${text.slice(0, 60)}…` : text}'`;
}
