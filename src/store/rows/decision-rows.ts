import { inRange, type Queries, type Range } from '../schema/queries.ts';
import type { actions } from '../schema/schema.ts';

/** A decision of an operator. See schema.ts. */
export type ActionRow = Readonly<typeof actions.$inferSelect>;

/** A decision to record: asked, or one that was carried out at once. */
export type NewAction = Omit<ActionRow, 'id'>;

export type ActionFilter = { readonly [K in 'action' | 'target' | 'state']?: ActionRow[K] | undefined };

type ActionEnd = Required<Pick<ActionRow, 'outcome' | 'endedAt'>> & { readonly state: 'done' | 'failed' };

/** Older decisions are dropped, unless they are still asked. For safety. */
const KEPT = 10_000;

const COLUMNS = 'id, at, who, action, target, argument, state, outcome, ended_at AS endedAt';

type DecisionReader = ReturnType<typeof createDecisionReader>;

/** Reads decisions. The table is small and has no index: `list` and `of` stop at the last row that they return. */
export function createDecisionReader({ row, rows }: Queries) {
  const list = inRange((order) =>
    rows<[Required<Range> & { limit: number; only: string }], ActionRow>(
      `SELECT ${COLUMNS} FROM actions WHERE id < :before AND id > :after
       AND action = coalesce(:only ->> 'action', action) AND target = coalesce(:only ->> 'target', target)
       AND state = coalesce(:only ->> 'state', state) ORDER BY id ${order} LIMIT :limit`,
    ),
  );
  const of = rows<[target: string, names: string, limit: number], ActionRow>(
    `SELECT ${COLUMNS} FROM actions WHERE target = ? AND action IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT ?`,
  );
  return {
    get: row<[id: number], ActionRow>(`SELECT ${COLUMNS} FROM actions WHERE id = ?`),
    /** Decisions within a range that are so. */
    list: (limit: number, only: Range & ActionFilter = {}) => {
      const { query, range } = list(only);
      return query({ ...range, limit, only: JSON.stringify(only) });
    },
    /** The newest first, about one target and with one of these actions. */
    of: (target: string, names: readonly string[], limit: number) => of(target, JSON.stringify(names), limit),
    /** Decisions that wait to be carried out, in the order of asking. */
    asked: rows<[], ActionRow>(`SELECT ${COLUMNS} FROM actions WHERE state = 'asked' ORDER BY id`),
  };
}

export function createDecisionWriter({ number, write }: Queries, reader: DecisionReader) {
  const add = number<[NewAction]>(
    `INSERT INTO actions (at, who, action, target, argument, state, outcome, ended_at)
     VALUES (:at, :who, :action, :target, :argument, :state, :outcome, :endedAt) RETURNING id`,
  );
  const prune = write<[upTo: number]>("DELETE FROM actions WHERE id <= ? AND state <> 'asked'");
  const end = write<[ActionEnd & { id: number }]>(
    `UPDATE actions SET state = :state, outcome = :outcome, ended_at = :endedAt WHERE id = :id AND state = 'asked'`,
  );
  return {
    ...reader,
    /** Records a decision, and drops the oldest ones beyond the newest 10,000. @returns its id */
    add: (action: NewAction): number => {
      const id = add(action);
      prune(id - KEPT);
      return id;
    },
    /** Notes what came of an asked decision. @returns false, without writing, if it has ended already */
    end: (id: number, ended: ActionEnd): boolean => end({ ...ended, id }) === 1,
  };
}
