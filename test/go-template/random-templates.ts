/** Random templates from a seeded grammar with data of bootstraps: most are valid. */
import type { TemplateCase } from './go-oracle.ts';
import { comparable, data, formats, literals, paths, ranges, type Type, types } from './template-vocabulary.ts';

/** One level deeper than bootstraps. */
const maxDepth = 4;

/** @param seed determines the templates */
export function randomTemplates(count: number, seed: number): TemplateCase[] {
  return Array.from({ length: count }, (_, index) => ({
    template: new Grammar(seed * 100_003 + index).template(),
    data,
  }));
}

class Grammar {
  #state: number;
  #variables: { readonly name: string; readonly type: Type }[] = [];
  #names = 0;
  #loops = 0;
  #templates: string[] = [];
  /** Whether `.` is the data; `$` always is. */
  #isDotData = true;

  constructor(seed: number) {
    this.#state = seed;
  }

  template(): string {
    const definitions = this.#chance(0.25) ? this.#definition() : '';
    return definitions + this.#statements(0);
  }

  #definition(): string {
    const name = `t${this.#names++}`;
    const body = this.#withEmptyScope(() => this.#statements(2));
    this.#templates.push(name);
    return this.#action(`define "${name}"`) + body + this.#action('end');
  }

  #withEmptyScope(createText: () => string): string {
    const [variables, loops, isDotData] = [this.#variables, this.#loops, this.#isDotData];
    this.#variables = [];
    this.#loops = 0;
    this.#isDotData = false;
    const candidate = createText();
    this.#variables = variables;
    this.#loops = loops;
    this.#isDotData = isDotData;
    return candidate;
  }

  #statements(depth: number): string {
    const declared = this.#variables.length;
    const text = Array.from({ length: 1 + this.#drawBelow(4) }, () => this.#statement(depth)).join('');
    this.#variables.length = declared;
    return text;
  }

  #statement(depth: number): string {
    const kinds = ['text', 'text', 'print', 'print', 'print', 'print', 'comment', 'set', 'call'];
    if (depth < maxDepth) kinds.push('if', 'if', 'with', 'range', 'range', 'block');
    if (this.#loops > 0) kinds.push('leave');
    switch (this.#pick(kinds)) {
      case 'text':
        return this.#pick(['{"a": 1}', ' \n  ', '\n', ',', '"key": ', ' } ', 'é', '\t', '}}', '{ { ']);
      case 'comment':
        return this.#pick(['{{/* {{ none }} */}}', '{{- /* a\nb */ -}}', '{{/**/ -}}']);
      case 'set':
        return this.#set();
      case 'call':
        return this.#templates.length === 0
          ? this.#action('.')
          : this.#action(
              `template "${this.#pick(this.#templates)}"${this.#chance(0.7) ? ` ${this.#pipeline(this.#type(), 1)}` : ''}`,
            );
      case 'if':
        return this.#branch('if', this.#condition(depth), depth);
      case 'with':
        return this.#withAction(depth);
      case 'range':
        return this.#range(depth);
      case 'block':
        return this.#block(depth);
      case 'leave':
        return (
          this.#action(`if ${this.#condition(depth)}`) +
          this.#action(this.#pick(['break', 'continue'])) +
          this.#action('end')
        );
      default:
        return this.#action(this.#pipeline(this.#type(), depth));
    }
  }

  #block(depth: number): string {
    const name = `b${this.#names++}`;
    const head = `block "${name}" ${this.#pipeline(this.#type(), depth)}`;
    return this.#action(head) + this.#withEmptyScope(() => this.#statements(depth + 1)) + this.#action('end');
  }

  #set(): string {
    if (this.#variables.length > 0 && this.#chance(0.4)) {
      const { name, type } = this.#pick(this.#variables);
      return this.#action(`${name} = ${this.#value(type, 1)}`);
    }
    const [name, type] = [`$v${this.#names++}`, this.#type()];
    const action = this.#action(`${name} := ${this.#chance(0.5) ? this.#value(type, 1) : this.#call(type, 1)}`);
    this.#variables.push({ name, type });
    return action;
  }

  #branch(keyword: string, pipe: string, depth: number): string {
    let text = this.#action(`${keyword} ${pipe}`) + this.#statements(depth + 1);
    while (this.#chance(0.25)) text += this.#action(`else if ${this.#condition(depth)}`) + this.#statements(depth + 1);
    if (this.#chance(0.5)) text += this.#action('else') + this.#statements(depth + 1);
    return text + this.#action('end');
  }

  #withAction(depth: number): string {
    const declared = this.#variables.length;
    const name = `$w${this.#names++}`;
    const declares = this.#chance(0.4);
    const type = this.#type();
    const pipe = this.#value(type, depth);
    if (declares) this.#variables.push({ name, type });
    let text = this.#action(`with ${declares ? `${name} := ` : ''}${pipe}`) + this.#withOtherDot(depth);
    if (this.#chance(0.2))
      text += this.#action(`else with ${this.#pipeline(this.#type(), depth)}`) + this.#withOtherDot(depth);
    if (this.#chance(0.4)) text += this.#action('else') + this.#statements(depth + 1);
    this.#variables.length = declared;
    return text + this.#action('end');
  }

  #withOtherDot(depth: number): string {
    const isDotData = this.#isDotData;
    this.#isDotData = false;
    const text = this.#statements(depth + 1);
    this.#isDotData = isDotData;
    return text;
  }

  #range(depth: number): string {
    const declared = this.#variables.length;
    const names = this.#pick([[], [`$e${this.#names++}`], [`$i${this.#names++}`, `$e${this.#names++}`]]);
    const rangeExpression = this.#pick(
      this.#chance(0.03) ? ['$.nothing', '$.missing', '$.cluster'] : ranges[names.length < 2 ? 'one' : 'two'],
    );
    const element = rangeExpression.includes('numbers') || rangeExpression === '3' ? 'int' : 'text';
    this.#variables.push(
      ...names.map((name, index) => {
        const isIndex = names.length === 2 && index === 0;
        return { name, type: isIndex ? (rangeExpression.includes('LABELS') ? 'text' : 'int') : element } as const;
      }),
    );
    this.#loops++;
    let text = this.#action(`range ${names.length > 0 ? `${names.join(', ')} := ` : ''}${rangeExpression}`);
    text += this.#withOtherDot(depth);
    this.#loops--;
    if (this.#chance(0.4)) text += this.#action('else') + this.#statements(depth + 1);
    this.#variables.length = declared;
    return text + this.#action('end');
  }

  #condition(depth: number): string {
    return this.#chance(0.3) ? this.#pipeline(this.#type(), depth) : this.#call('bool', depth);
  }

  #pipeline(type: Type, depth: number): string {
    const first = this.#chance(0.5) ? this.#value(type, depth) : this.#call(type, depth);
    if (!this.#chance(0.25)) return first;
    const bar = this.#pick([' | ', '|', ' |', '| ']);
    const next = [
      'printf "%v"',
      'print',
      'html',
      'js',
      'urlquery',
      'printf "%s-%v" "a"',
      'not',
      'or ""',
      'and true',
      'println',
      'printf "%q"',
    ];
    if (type === 'text') next.push('len', 'eq "a" "web.shop"', 'printf "%.3s"', 'html | js');
    if (type === 'int') next.push('eq 1', 'lt 7', 'printf "%04d"', 'printf "%d-%d" 1');
    return first + bar + this.#pick(this.#chance(0.02) ? ['.cluster', '"a"', '$', 'len', 'none', 'eq 1'] : next);
  }

  /** A call with this result type and any number of arguments. */
  #call(type: Type, depth: number): string {
    const value = (argumentType: Type): string => this.#value(argumentType, depth + 1);
    switch (type) {
      case 'bool': {
        const kind = this.#pick(this.#chance(0.05) ? types : comparable);
        const orderedType = this.#pick(['int', 'text', 'float'] as const);
        return this.#pick([
          () => `eq ${value(kind)} ${value(kind)}`,
          () => `eq ${value(kind)} ${value(kind)} ${value(kind)}`,
          () => `ne ${value(kind)} ${value(kind)}`,
          () => `${this.#pick(['lt', 'le', 'gt', 'ge'])} ${value(orderedType)} ${value(orderedType)}`,
          () => `${this.#pick(['lt', 'le', 'gt', 'ge'])} ${value('int')} ${value('int')}`,
          () => `not ${value(this.#type())}`,
          () => `and ${value(kind)} ${value('bool')}`,
          () => `or ${value(kind)} ${value(this.#type())} ${value('bool')}`,
          () => `eq ${value('text')} nil`,
        ])();
      }
      case 'int':
        return this.#pick([
          () => `len ${value(this.#pick(['text', 'list', 'map']))}`,
          () => 'len (slice $.cluster 2)',
          () => `index $.numbers ${this.#drawBelow(this.#chance(0.03) ? 5 : 3)}`,
          () => `or ${value('int')} ${value('int')}`,
          () => `and ${value('int')} ${value('int')}`,
        ])();
      case 'list':
        return this.#pick([
          () => `slice $.numbers ${this.#drawBelow(4)}`,
          () => `slice $.mixed 1 ${1 + this.#drawBelow(4)}`,
          () => `or ${value('list')} ${value('list')}`,
        ])();
      case 'map':
        return this.#pick([() => `index $.metadata "LABELS"`, () => `or ${value('map')} ${value('map')}`])();
      case 'text':
        return this.#text(depth);
      default:
        return `or ${value(type)} ${value(type)}`;
    }
  }

  #text(depth: number): string {
    const value = (argumentType: Type): string => this.#value(argumentType, depth + 1);
    const someValues = (): string =>
      Array.from({ length: 1 + this.#drawBelow(4) }, () => value(this.#type())).join(' ');
    return this.#pick([
      () => `print ${someValues()}`,
      () => `println ${someValues()}`,
      () => `html ${someValues()}`,
      () => `js ${someValues()}`,
      () => `urlquery ${someValues()}`,
      () => `or ${value('text')} ${value('text')}`,
      () => `and ${value('text')} ${value('text')}`,
      () => `slice ${this.#chance(0.04) ? value('text') : '$.nodeID'} ${this.#drawBelow(3)} ${3 + this.#drawBelow(5)}`,
      () => `index $.metadata.LABELS ${this.#pick(['"app"', '"none"', '"a/b"'])}`,
      () => `index $.extraStatTags ${this.#drawBelow(3)}`,
      () => this.#printf(depth),
      () => this.#printf(depth),
      () => this.#printf(depth),
    ])();
  }

  #printf(depth: number): string {
    const [format, argumentType] = this.#pick(formats);
    return `printf ${JSON.stringify(`<${format}>`)}${argumentType.map((type) => ` ${this.#value(type, depth + 1)}`).join('')}`;
  }

  /** An operand, in parentheses where needed. */
  #value(type: Type, depth: number): string {
    if (this.#chance(0.015)) return this.#path(this.#pick(paths.odd));
    if (type === 'odd') return this.#path(this.#pick(paths.odd));
    const knownVariables = this.#variables.filter((variable) => variable.type === type || this.#chance(0.02));
    if (knownVariables.length > 0 && this.#chance(0.4))
      return this.#pick(knownVariables).name + (this.#chance(0.01) ? '.app' : '');
    if (!this.#isDotData && this.#chance(0.02)) return '.';
    if (depth < maxDepth && this.#chance(0.15))
      return `(${this.#spaces()}${this.#call(type, depth + 1)}${this.#spaces()})`;
    if (type === 'text' && this.#chance(0.1))
      return this.#pick([
        '($.metadata).NAMESPACE',
        '(index $.metadata "LABELS").app',
        '($.config).ConfigPath',
        '$.metadata.LABELS.version',
      ]);
    const texts = type in literals ? literals[type as 'int'] : undefined;
    if (texts !== undefined && this.#chance(0.35)) return this.#pick(texts);
    return this.#path(this.#pick(paths[type]));
  }

  #path(path: string): string {
    return this.#isDotData && this.#chance(0.7) ? `.${path}` : `$.${path}`;
  }

  #type(): Type {
    return this.#pick(types);
  }

  #action(content: string): string {
    const leftDelimiter = this.#pick(['{{', '{{', '{{ ', '{{- ', '{{-\n ']);
    const rightDelimiter = this.#pick(['}}', '}}', ' }}', ' -}}', '\n-}}']);
    return leftDelimiter + content + rightDelimiter;
  }

  #spaces(): string {
    return this.#pick(['', '', '', ' ', '\n']);
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#drawBelow(of.length)]!;
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #drawBelow(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** A generator with 32 bits of state. */
  #random(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let mixed = this.#state ^ (this.#state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296;
  }
}
