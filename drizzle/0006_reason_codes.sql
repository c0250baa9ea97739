-- Reasons and doubts were sentences before. Those by which rules decide get their codes; the others keep their words.
UPDATE `runs` SET `reasons` = (SELECT json_group_array(json(CASE
  WHEN value LIKE 'held%' THEN json_object('code', 'held', 'why', json(CASE
      WHEN value LIKE '%lists no product%' THEN json_object('code', 'empty')
      WHEN value LIKE '% were read' THEN json_object('code', 'count',
        'wanted', CAST(substr(value, instr(value, ' has ') + 5) AS INTEGER),
        'read', CAST(substr(value, instr(value, ', and ') + 6) AS INTEGER),
        'of', iif(value LIKE '%the list has%', 'list', 'total'))
      ELSE json_object('code', 'limit',
        'removals', CAST(substr(value, instr(value, ': ') + 2) AS INTEGER),
        'limit', CAST(substr(value, instr(value, 'limit of ') + 9) AS INTEGER),
        'announced', CAST(iif(instr(value, 'announced '), substr(value, instr(value, 'announced ') + 10), 0) AS INTEGER)) END),
    'verdict', CASE WHEN value LIKE 'held until approved%' THEN 'approved' WHEN value LIKE 'held until rejected%' THEN 'rejected' END)
  WHEN value LIKE 'deltas did not tell%' THEN json_object('code', 'uncontrolled', 'run', runs.id)
  ELSE json_object('code', 'contradiction', 'said', value) END)) FROM json_each(runs.reasons))
WHERE `reasons` LIKE '["%';
--> statement-breakpoint
UPDATE `checkpoints` SET `doubt` = json_object('code', 'contradiction', 'said', `doubt`) WHERE `doubt` IS NOT NULL;
