import { setBounded } from '../../model/collections/set-bounded.ts';
import { rulesIn, type StreamRules } from '../../model/standard-metrics/stream-rules.ts';

const maxNames = 64;
const rulesByLogName = new Map<string, StreamRules>();

export function rulesOf(logName: string): StreamRules | undefined {
  const cachedRules = rulesByLogName.get(logName);
  if (cachedRules !== undefined) return cachedRules;
  const rules = rulesIn(logName);
  if (rules !== undefined) setBounded(rulesByLogName, logName, rules, maxNames);
  return rules;
}
