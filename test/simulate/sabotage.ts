/** A deliberate bug, as replacements of source text. Every `find` must occur exactly once. */
export interface Sabotage {
  readonly name: string;
  readonly edits: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
  /** The test that must find it. Default: the simulator, which has neither sinks nor a schedule. */
  readonly test?: string;
}

function bug(name: string, file: string, find: string, replace: string): Sabotage {
  return { name, edits: [{ file, find, replace }] };
}

function bugFor(test: string, ...parts: Parameters<typeof bug>): Sabotage {
  return { ...bug(...parts), test };
}

/** Tests the simulator and the tests of sinks and schedule: each of these bugs must be found. */
export const SABOTAGES: readonly Sabotage[] = [
  bugFor(
    'test/store/lease.test.ts',
    'the lease accepts an old epoch',
    'src/store/schema/lease.ts',
    'if (!isReleased && epochOf(id) === epoch) return;',
    'if (!isReleased && epochOf(id) >= epoch) return;',
  ),
  bug(
    'pages are applied without a transaction',
    'src/store/schema/transaction.ts',
    'const done = run.immediate(work);',
    'const done = { result: work() } as { result: unknown } | null;',
  ),
  bug(
    'a checkpoint is written before its products',
    'src/sync/apply-page.ts',
    '    const applied = leased.write((writer) => {',
    '    const early = leased.write((writer) => pages.filter(({ task }) => !store.runs.hasCheckpoint(runId, task.pass, task.window)).map((page) => { pin(writer, page); writer.runs.addCheckpoint(checkpointOf(options, page, draftPage(options, page))); return page; }));\n    const applied = leased.write((writer) => { for (const page of early) { const draft = draftPage(options, page); if (newProducts(draft) + draft.changed.size > 0) write(writer, draft, runId, clock.now()); } if (early.length > 0) return early.map((page) => { const { ids: _ids, ...rest } = checkpointOf(options, page, draftPage(options, page)); return rest; });',
  ),
  bug(
    'the watermark is the local time',
    'src/proof/watermark.ts',
    'return response.sourceTime - Math.max(0, response.receivedAt - response.requestedAt) - (response.ageMs ?? 0);',
    'return response.requestedAt;',
  ),
  bug(
    'the watermark goes back',
    'src/store/rows/watermark-row.ts',
    'watermark = max(coalesce(watermark, 0), :to)',
    'watermark = :to',
  ),
  bug(
    'the watermark advances although a delta is open',
    'src/sync/verdict.ts',
    'const deltasRead = closed && allRead && isUsable && !doubtful;',
    'const deltasRead = allRead || closed || isUsable || !doubtful || doubtful;',
  ),
  bug('the last window is skipped', 'src/proof/plan.ts', '    return at + 1;\n', '    return Math.max(1, at);\n'),
  bug(
    'a modified product joins windows',
    'src/proof/seams.ts',
    'if (modifiedIn(id) > window.pass) continue;',
    'if (modifiedIn(id) > 250) continue;',
  ),
  bugFor(
    'test/sync/untold.test.ts',
    'changes that no delta told do not open the run',
    'src/sync/untold.ts',
    'if (untold.length === 0) return null;',
    'if (untold.length >= 0) return null;',
  ),
  bugFor(
    'test/sync/odd-items.test.ts',
    'a list whose items are all rejected is a complete one',
    'src/sync/check-progress.ts',
    'if (rejected < REJECTED_LEAST || 2 * rejected <= items) return;',
    'if (rejected < REJECTED_LEAST || 2 * rejected <= 2 * items) return;',
  ),
  bugFor(
    'test/sync/unreadable.test.ts',
    'the total ends the reading of plain pages',
    'src/proof/plan.ts',
    'if (holdsEnd(window) || window.items === 0) last',
    'if (holdsEnd(window) || window.items === 0 || (options.seam === 0 && window.totalPages === window.page)) last',
  ),
  bugFor(
    'test/sync/unreadable.test.ts',
    'a window that is read in narrower ones ends the list at its total',
    'src/sync/pass-windows.ts',
    'for (const window of narrowed) plan.note({ ...window, ...about, items: window.perPage });',
    'for (const window of narrowed.slice(0, 0)) plan.note({ ...window, ...about, items: window.perPage });',
  ),
  bugFor(
    'test/sync/unreadable.test.ts',
    'products that cannot be read do not open the run',
    'src/sync/verdict.ts',
    'const unreadable = doubts.filter(isUnreadable);',
    'const unreadable = doubts.filter((doubt) => isUnreadable(doubt) && doubt === "");',
  ),
  bugFor(
    'test/sync/unreadable.test.ts',
    'a page that fails is not read in narrower windows',
    'src/sync/unread-windows.ts',
    'if (!KINDS.has(kind) || !isPassing) return false;',
    'if (!KINDS.has(kind) || !isPassing || count >= 0) return false;',
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'the same products at the same places join neighbours',
    'src/proof/seams.ts',
    'if (isStill) still.join(at - 1, at);',
    'if (isStill || standStill(shift, idsBefore, ids)) sets.join(at - 1, at);',
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'a product that changed, and that no delta tells of, joins windows',
    'src/sync/evidence.ts',
    'products.changedSeq(id) <= seq',
    'products.changedSeq(id) <= seq + Number.MAX_SAFE_INTEGER',
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'withdrawn products that only a delta shows count as read',
    'src/sync/evidence.ts',
    'return product !== undefined && !isWithdrawnBody(product.body);',
    'return product !== undefined && (product.id > 0 || !isWithdrawnBody(product.body));',
  ),
  bugFor(
    'test/sync/assess-run.test.ts',
    'a product that a later delta does not show any more counts as read',
    'src/sync/evidence.ts',
    'if (retold.has(modifiedIn(id))) return false;',
    'if (retold.has(-2 - modifiedIn(id))) return false;',
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'products that were withdrawn before the mirror knew them do not count',
    'src/sync/verdict.ts',
    "const unknown = withdrawnAs === 'removed' ? list.unknown() : 0;",
    "const unknown = withdrawnAs === 'removed' ? 0 : 0;",
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'one lookup that finds a product vouches for all others',
    'src/sync/sweep.ts',
    'if (near.length > 1 && isBetween) gone.add(page);',
    'if (near.length > 0 || isBetween) gone.add(page);',
  ),
  bugFor(
    'test/sync/hostile-sources.test.ts',
    'a delta restores withdrawn products that a run has removed',
    'src/sync/judge-item.ts',
    "if (known.removed && product.withdrawn && isDelta) return { kind: 'same' };",
    '',
  ),
  bug(
    'an open run removes the products it did not see',
    'src/sync/sweep.ts',
    "const sealed = proof === 'sealed';",
    'const sealed = proof !== null;',
  ),
  bug(
    'a run with open seams is sealed',
    'src/proof/seams.ts',
    'const joined = reachesEnd(all, sets);',
    'const joined = reachesEnd(all, sets) || ends.size >= 0;',
  ),
  bug(
    'a run is sealed without the end of the list',
    'src/proof/seams.ts',
    'windows.flatMap((window, at) => (holdsEnd(window) ? [sets.find(at)] : []))',
    'windows.flatMap((window, at) => (holdsEnd(window) || at > 0 ? [sets.find(at)] : []))',
  ),
  bug(
    'the order of the list is not checked',
    'src/proof/seams.ts',
    'if (there < previous) disorder++;',
    'if (there < previous) disorder += 0;',
  ),
  {
    name: 'a long delta is read in plain pages',
    edits: [
      {
        file: 'src/sync/plan-pass.ts',
        find: 'return { plan: createListPlan(list), taskOf };',
        replace:
          "return { plan: createListPlan(pass.kind === 'delta' || pass.kind === 'settle' ? { ...list, seam: 0 } : list), taskOf };",
      },
      {
        file: 'src/sync/evidence.ts',
        find: 'complete: seams?.sealed ?? (exact',
        replace: 'complete: seams !== null || (exact',
      },
      {
        file: 'src/sync/evidence.ts',
        find: 'if (pass.seam === 0) return false;\n  const idsOf',
        replace: 'if (isDelta(pass)) return true;\n  const idsOf',
      },
      {
        file: 'src/sync/verdict.ts',
        find: 'if (seams.sealed) return null;',
        replace: "if (seams.sealed || pass.kind !== 'list') return null;",
      },
      {
        file: 'src/sync/verdict.ts',
        find: 'seams?.stoodStill !== true',
        replace: 'seams?.stoodStill === false',
      },
    ],
  },
  {
    name: 'the last delta may be longer than one response',
    edits: [
      {
        file: 'src/sync/next-step.ts',
        find: 'if (isClosed(store, last)) return null;',
        replace: "if (isClosed(store, last) || last.kind === 'delta') return null;",
      },
      {
        file: 'src/sync/evidence.ts',
        find: 'const closed = last !== undefined && isClosed(store, last);',
        replace: "const closed = last?.kind === 'delta';",
      },
    ],
  },
  bug(
    'a delta starts at the watermark, without overlap',
    'src/proof/watermark.ts',
    'return Math.max(0, watermark - overlapMs);',
    'return Math.max(0, watermark + 0 * overlapMs);',
  ),
  bug(
    'a clock that was put back is not detected',
    'src/proof/watermark.ts',
    'if (source >= reference.source + elapsedMs - toleranceMs) continue;',
    'if (source >= reference.source + elapsedMs - toleranceMs || toleranceMs > 0) continue;',
  ),
  bug(
    'an earlier read that arrives late overwrites a later one',
    'src/sync/judge-item.ts',
    "return isOutdated() ? { kind: 'outdated' } : { kind: 'changed', change };",
    "return { kind: 'changed', change };",
  ),
  bug(
    'products in deltas do not count as seen',
    'src/sync/evidence.ts',
    'if (!controls.has(window.pass)) seen.addAll(ids);',
    'if (!controls.has(window.pass) && wholeList.has(window.pass)) seen.addAll(ids);',
  ),
  bug(
    'a removal is not logged',
    'src/store/rows/removals.ts',
    "        records.push({ seq, op: 'removed', productId: id, prevSeq, before: '{}', added: [] });\n      }\n      changes.append(records, runId, atMs);",
    "        records.push({ seq, op: 'removed', productId: id, prevSeq, before: '{}', added: [] });\n      }\n      changes.append([], runId, atMs);",
  ),
  bug('a restored product stays removed', 'src/sync/judge-item.ts', 'if (isSame && !known.removed)', 'if (isSame)'),
  bugFor(
    'test/sync/next-step.test.ts',
    'a cache may answer a delta with that of another run',
    'src/sync/next-step.ts',
    '(runId % RUNS) * PASSES',
    '(runId % RUNS) * 0',
  ),
  bugFor(
    'test/sync/apply-page.test.ts',
    'a page that was compared long ago counts as unchanged',
    'src/sync/fast/unchanged-items.ts',
    'ids.map((id) => (since.has(id) ? -id : id))',
    'ids.map((id) => (since.has(id) && id < 0 ? -id : id))',
  ),
  bug(
    'a product with another text counts as known',
    'src/store/rows/known-products.ts',
    'THEN id ELSE -id END',
    'THEN id ELSE id END',
  ),
  {
    name: 'an unchanged product is written and logged',
    edits: [
      {
        file: 'src/sync/fast/unchanged-items.ts',
        find: 'const isUnchanged = id > 0 && !withdrawn.has(position) && !maybeChanged.has(id);',
        replace: 'const isUnchanged = false;',
      },
      {
        file: 'src/sync/judge-item.ts',
        find: "if (isSame && !known.removed) return { kind: 'same' };",
        replace: '',
      },
    ],
  },
  bug(
    'the products of one window do not count as seen',
    'src/sync/evidence.ts',
    'seen.addAll(ids);\n    if (wholeList',
    'if (window.pass > 0 || window.page !== 2) seen.addAll(ids);\n    if (wholeList',
  ),
  bug(
    'an empty catalog is not held',
    'src/sync/finish-run.ts',
    'const held = swept?.holdReason != null;',
    'const held = swept?.holdReason === undefined && swept !== null;',
  ),
  {
    name: 'a run does not wait before it settles',
    edits: [
      {
        file: 'src/sync/execute-run.ts',
        find: 'let leftMs = Math.min(settings.overlapMs, noted?.leftMs ?? settings.overlapMs);',
        replace: 'let leftMs = 0 * (noted?.leftMs ?? 0);',
      },
      {
        file: 'src/sync/settle.ts',
        find: 'return pass.sourceTime - asked >= overlapMs - toleranceMs;',
        replace: 'return toleranceMs > 0;',
      },
    ],
  },
  {
    name: 'the clock decides how long a resumed run settles, and a pass ends when it begins',
    edits: [
      {
        file: 'src/sync/execute-run.ts',
        find: 'noted?.leftMs ?? settings.overlapMs);',
        replace: 'noted === null ? settings.overlapMs : Math.max(0, noted.until - clock.now()));',
      },
      {
        file: 'src/sync/settle.ts',
        find: 'sourceTime + (end - start);',
        replace: 'sourceTime + 0 * (end - start);',
      },
    ],
  },
  bug(
    'the settling delta starts at the previous delta',
    'src/sync/settle.ts',
    'return Math.min(deltaFrom(told, overlapMs), putBack ?? Number.POSITIVE_INFINITY);',
    'return Math.min(passes.at(-1)?.sourceTime ?? told, putBack ?? Number.POSITIVE_INFINITY);',
  ),
  {
    name: 'products are removed before the settling delta',
    edits: [
      {
        file: 'src/sync/next-step.ts',
        find: 'return mustSettle && situation.settles < MAX_SETTLES ?',
        replace: 'return mustSettle && situation.settles < 0 ?',
      },
      {
        file: 'src/sync/finish-run.ts',
        find: 'if (!conclusion.mustSettle) return conclusion;',
        replace: 'if (UNSETTLED.length > 0) return conclusion;',
      },
    ],
  },
  // The simulator sees no harm: deltas are read from the moment that the page shows.
  bugFor(
    'test/catalog/watermark.test.ts',
    'an old page from a cache is believed',
    'src/proof/watermark.ts',
    'return ageMs > overlapMs ?',
    'return ageMs > 1_000 * overlapMs ?',
  ),
  bug(
    'the rate limit is doubled',
    'src/pace/pace.ts',
    'return { intervalMs: ((1 + MARGIN) * rate.windowMs) / rate.requests,',
    'return { intervalMs: (0.5 * rate.windowMs) / rate.requests,',
  ),
  bug(
    'requests are not reserved in the mirror',
    'src/pace/pacer.ts',
    'if (next > now || shared === undefined || isReserved(now, pace, slots)) return',
    'if (next > now || shared !== null || isReserved(now, pace, slots)) return',
  ),
  bug(
    'a resumed pass skips planned windows',
    'src/sync/read-pass.ts',
    'else if (windows.isPlanned(task.window)) take(used.captured);',
    'else if (windows.isPlanned(task.window) && task.window.page % 7 !== 0) take(used.captured); else { windows.noteApplied({ ...task.window, items: task.window.perPage, numItems: used.captured.page.envelope.numItems, totalPages: 0, requestedAt: 0, doubt: null }); windows.giveUp(task.window); wake(); }',
  ),
  bug(
    'ignored fields are compared',
    'src/sync/judge-item.ts',
    'ignoreFields.length > 0 && sameContent(',
    'ignoreFields.length < 0 && sameContent(',
  ),
  bug(
    'a change that is not in an ignored field is ignored',
    'src/sync/judge-item.ts',
    'ignoreFields.length > 0 && sameContent(',
    'ignoreFields.length > 0 || sameContent(',
  ),
  bug(
    'a delta follows when the settings select other products',
    'src/sync/source-binding.ts',
    'unfinished: noted !== null });\n  return noted !== null;',
    "unfinished: noted !== null });\n  return noted?.address === '';",
  ),
  bug(
    'a run that read other products is resumed',
    'src/sync/keeper.ts',
    'if (selection === source.selection) return null;',
    "if (selection !== '') return null;",
  ),
  bug(
    'a withdrawn product stays, although the settings remove it',
    'src/sync/judge-item.ts',
    "return product.withdrawn && withdrawnAs === 'removed';",
    "return product.withdrawn && withdrawnAs === 'removed' && product === null;",
  ),
  bug(
    'a withdrawn product is removed, although the settings keep it',
    'src/sync/judge-item.ts',
    "return product.withdrawn && withdrawnAs === 'removed';",
    'return product.withdrawn && withdrawnAs.length > 0;',
  ),
  bug(
    'the removal limit does not hold removals',
    'src/sync/sweep.ts',
    'if (unexpected > limit) {',
    'if (unexpected > limit && total < 0) {',
  ),
  bug(
    'a watermark moves although the deltas do not reach back to it',
    'src/sync/finish-run.ts',
    'const reachesBack = readUpTo === null || conclusion.deltaFrom <= deltaFrom(readUpTo, overlapMs);',
    'const reachesBack = readUpTo === null || conclusion.deltaFrom > deltaFrom(0, overlapMs);',
  ),
  bug(
    'a product that went back is taken for an outdated read',
    'src/sync/judge-item.ts',
    "return isOutdated() ? { kind: 'outdated' }",
    "const versionOf = (body: string) => Number(/\"version\":(\\d+)/.exec(body)?.[1]); return versionOf(product.body) < versionOf(known.body) ? { kind: 'same' } : isOutdated() ? { kind: 'outdated' }",
  ),
  bugFor(
    'test/sync/lanes.test.ts',
    'fetchers and commands share out fractions of requests',
    'src/pace/pace.ts',
    'Math.max(1, Math.floor(requests / 10))',
    'requests / 10',
  ),
  bugFor(
    'test/sync/learned-rate.test.ts',
    'each refusal lowers the learned limit, without a success between them',
    'src/pace/learned-rate.ts',
    'if (!hasSucceeded || now < knownUntil) return;',
    'if (!hasSucceeded && now < knownUntil) return;',
  ),
  bugFor(
    'test/sync/learned-rate.test.ts',
    'a refusal does not lower the learned limit',
    'src/pace/learned-rate.ts',
    'const DECREASE = 0.7;',
    'const DECREASE = 1;',
  ),
  bugFor(
    'test/queue/bullmq.test.ts',
    'deltas wait for the pages of lists',
    'src/queue/bullmq/jobs.ts',
    'isList && { priority: LIST_PRIORITY }',
    '!isList && { priority: LIST_PRIORITY }',
  ),
  bugFor(
    'test/schedule/run-queue.test.ts',
    'another keeper takes over late',
    'src/operate/schedule/run-queue.ts',
    'const STANDBY_CHECK_MS = 3_000;',
    'const STANDBY_CHECK_MS = 20_000;',
  ),
  bugFor(
    'test/relay/lost-tail.test.ts',
    'events that a store has lost are not sent again',
    'src/relay/resume-position.ts',
    'continueAt(store, sink, Math.max(generation, mark.generation), mark.cursor);',
    'continueAt(store, sink, Math.max(generation, mark.generation), Math.max(cursor, mark.cursor));',
  ),
  bugFor(
    'test/relay/restored-mirror.test.ts',
    'a store that has changes of a lost future is fed on',
    'src/relay/resume-position.ts',
    'return recordedAt === undefined || recordedAt === mark.at;',
    'return recordedAt === undefined || recordedAt > 0;',
  ),
  bugFor(
    'test/relay/contract.test.ts',
    'later events of a parked product do not wait for it',
    'src/relay/read-batch.ts',
    'if (change.seq >= (blocked.get(change.vbid) ?? Number.POSITIVE_INFINITY)) {',
    'if (change.seq === blocked.get(change.vbid)) {',
  ),
  bugFor(
    'test/relay/recovery.test.ts',
    'the cursor moves before the store confirms',
    'src/relay/feed-sink.ts',
    '    const delivering = session.deliver(',
    '    acks.confirm(row, to, 0, false);\n    const delivering = session.deliver(',
  ),
  bugFor(
    'test/relay/contract.test.ts',
    'a removal is not sent to a store that is being filled',
    'src/relay/read-batch.ts',
    "({ op }) => !filling || op !== 'removed' || sink.backfillRemoved",
    "({ op }) => !filling || op !== 'removed'",
  ),
  bugFor(
    'test/relay/slow-store.test.ts',
    'a batch that timed out is sent again as it is',
    'src/relay/batch-size.ts',
    'limit = Math.max(1, Math.floor(events / 2));',
    'limit = Math.max(1, events);',
  ),
  bugFor(
    'test/relay/jsonl.test.ts',
    'a file that another process has written to is appended to',
    'src/relay/sinks/jsonl/append-file.ts',
    'const checked = await check();',
    'const checked = file as FileHandle;',
  ),
  bugFor(
    'test/relay/restored-mirror.test.ts',
    'a restored mirror gives out ids again',
    'src/catalog/event.ts',
    '{era}:`;',
    "{era === '' ? era : ''}:`;",
  ),
  bugFor(
    'test/schedule/due.test.ts',
    'a time in an hour that is skipped does not come',
    'src/operate/schedule/due.ts',
    '!NUMBERS.test(minute) || !NUMBERS.test(hour)',
    '!NUMBERS.test(minute) || hour !== ""',
  ),
  bugFor(
    'test/schedule/due.test.ts',
    'a tick that was missed is not made up for',
    'src/operate/schedule/due.ts',
    'const start = Math.max(afterMs ?? Number.NEGATIVE_INFINITY, nowMs - span);',
    'const start = Math.max(afterMs ?? Number.NEGATIVE_INFINITY, nowMs - Math.min(span, 300_000));',
  ),
  bugFor(
    'test/schedule/scheduler.test.ts',
    'nothing is due until a clock that was put back catches up',
    'src/operate/schedule/due.ts',
    'return servedMs !== null && servedMs > nowMs + TOLERANCE_MS;',
    'return servedMs !== null && servedMs > nowMs + TOLERANCE_MS * 10_000_000;',
  ),
  bugFor(
    'test/schedule/scheduler.test.ts',
    'a run that could not be requested ends the check of the others',
    'src/operate/schedule/scheduler.ts',
    '      checks.unrequested.failed(kind, { kind, ...errorFields(error) });',
    '      throw error;',
  ),
  bugFor(
    'test/queue/patient-worker.test.ts',
    'a worker asks a Redis that refuses commands again at once',
    'src/queue/bullmq/jobs.ts',
    '    if (errors > 0) await clock.sleep(pauseMs, closing);\n',
    '    if (errors > 9_999) await clock.sleep(pauseMs, closing);\n',
  ),
  bugFor(
    'test/trouble.test.ts',
    'every failure has a line in the log',
    'src/base/trouble.ts',
    'const isDue = isOld(before.saidAt);',
    'const isDue = lastAt > 0;',
  ),
  // In the simulator the source's total, the settling delta and the order of what windows share make up for these two.
  bugFor(
    'test/sync/refusals.test.ts',
    'a request that is refused after the first page is not repeated',
    'src/sync/fetch-page.ts',
    'task.answered !== true ||',
    'task.answered !== undefined ||',
  ),
  bugFor(
    'test/sync/next-step.test.ts',
    'the delta after the list is skipped',
    'src/sync/evidence.ts',
    "return pass.kind !== 'list' && stoodStill(store, pass);",
    "return pass.kind === 'list' || stoodStill(store, pass);",
  ),
  bugFor(
    'test/catalog/seams.test.ts',
    'a product that is listed twice joins two places',
    'src/proof/seams.ts',
    'if (canOverlap(shared, most)) sets.join(otherAt, at);',
    'if (canOverlap(shared, most) || shared.count > 0) sets.join(otherAt, at);',
  ),
  bugFor(
    'test/sync/assess-run.test.ts',
    'an item that a delta rejected does not keep a run from concluding',
    'src/sync/verdict.ts',
    'lists.some(({ rejected }) => rejected > 0)',
    'list.rejected > 0',
  ),
  // The adversary must find these by itself, although other tests have a history for most of them.
  bugFor(
    'test/simulate/adversary.test.ts',
    'neighbours are joined if they stood still, although a job modified what they share',
    'src/proof/seams.ts',
    'if (isStill) still.join(at - 1, at);',
    'if (isStill || standStill(shift, idsBefore, ids)) sets.join(at - 1, at);',
  ),
  bugFor(
    'test/simulate/adversary.test.ts',
    'only items that the list rejected keep a run from being sealed',
    'src/sync/verdict.ts',
    'lists.some(({ rejected }) => rejected > 0)',
    'list.rejected > 0',
  ),
  bugFor(
    'test/simulate/adversary.test.ts',
    'a product that changed and was erased joins windows',
    'src/sync/evidence.ts',
    'products.changedSeq(id) <= seq',
    'products.changedSeq(id) <= seq + Number.MAX_SAFE_INTEGER',
  ),
  bugFor(
    'test/simulate/adversary.test.ts',
    'a withdrawn product makes up for one that was not read',
    'src/sync/evidence.ts',
    'return product !== undefined && !isWithdrawnBody(product.body);',
    'return product !== undefined && (product.id > 0 || !isWithdrawnBody(product.body));',
  ),
  bugFor(
    'test/simulate/adversary.test.ts',
    'outdated pages count: a read that a later one contradicts joins windows',
    'src/sync/plan-page-write.ts',
    'Math.min(outdatedFrom, known.changedSeq)',
    'Math.min(outdatedFrom, known.changedSeq + Number.MAX_SAFE_INTEGER)',
  ),
  bugFor(
    'test/simulate/adversary.test.ts',
    'the settling wait is skipped on resume',
    'src/sync/execute-run.ts',
    'let leftMs = Math.min(settings.overlapMs, noted?.leftMs ?? settings.overlapMs);',
    'let leftMs = noted === null ? settings.overlapMs : 0;',
  ),
];
