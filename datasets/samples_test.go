package datasets

// samples are small sound files of every format; the fuzz targets start from them.
var samples = map[Format]string{
	Azure: "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n" +
		"2024-10-15T12:00:00.269Z,0,770,491\n2024-10-15T12:00:05.819Z,1,949,126\n",
	BurstGPT: "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"19440110.5,s_1722,43,GPT-4,906,446,1352,Conversation log\n19440161.0,s_d598,2,ChatGPT,36,29,65,Conversation log\n",
	LMBench: "prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,launch_time,finish_time\n" +
		"76.0,21.0,0.05,0.5,3603,1,1746686838.5,1746686839.25\n",
	Measured: "run,model,hardware,replicas,stack,offered_qps,req_id,session_id,turn,arrival_s,prompt_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,queue_ms,inflight,inflight_prefill,status\n" +
		"r1,m,H100 tp1,8,vllm,0.5,7,u1,2,1.25,21073,100,1139.5,15.5,2661,,3,1,ok\nr1,m,H100 tp1,,vllm,,8,,,1.0,10,,,,,,,,error:503\n",
	VLLMCPU: "id,t,endpoint,group,shared_prefix_tokens,prompt_tokens,cached_tokens,max_tokens,output_tokens,scraped_running,scraped_waiting,scraped_kv,scrape_age_ms,inflight,inflight_prefill_tokens,inflight_decode,inflight_context_tokens,ttft_ms,itl_mean_ms,itl_p50_ms,itl_p95_ms,e2e_ms,error\n" +
		"0,0.0945,1,3,1024,1578,512,67,66,2,1,0.25,136.8,4,700,3,5000,97.131,5.127,4.225,8.605,435.545,\n1,0.2,0,9,0,20,,8,,0,0,0.0,10,0,0,0,0,,,,,,timeout\n",
	ServeGenRates:   "client,window_start_s,rate_rps,interarrival_cv,dist,param1,param2\n35,600,8.34,1.359092,Gamma,0.54138,0.211625\n",
	ServeGenLengths: "client,window_start_s,in_p10,in_p50,in_p90,in_p99,out_p10,out_p50,out_p90,out_p99\n35,0,11,21,103,511,593,1244,2190,7605\n",
	TimeSeries:      "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n1.0,3392.0,2.0,5,2,13.25\n",
	EngineLog: "run,pod,time,prompt_tok_s,gen_tok_s,running,swapped,pending,kv_pct\n" +
		"r,p1,02-08 14:06:29,0.0,222.1,7,0,3,50.0\nr,p1,02-08 14:06:34,127.8,128.0,1,0,0,0.6\n",
	FPM: "run,model,phase,workload_segment,counter_id,dp_rank,sum_prefill_tokens,num_prefill_requests,sum_prefill_kv_tokens,var_prefill_length,num_decode_requests,sum_decode_kv_tokens,var_decode_kv_tokens,queued_prefill_requests,queued_prefill_tokens,queued_var_prefill_length,queued_decode_requests,queued_decode_kv_tokens,queued_var_decode_kv_tokens,latency_ms\n" +
		"r,m,mixed,real,652,1,128,1,64,0.5,9,41741,22371810.988,2,300,1.5,4,500,2.5,14.627\n",
	Steps: "run,step_id,t_us,duration_us,running,waiting,prefill_reqs,decode_reqs,sched_tokens,prefill_tokens,decode_tokens,finished,preempted,kv_usage,kv_blocks_total,kv_blocks_free,cycle_us,tp\n" +
		"r,10,442387,553,17,1,4,13,1535,1522,13,2,3,0.018115,31356,30788,,4\n",
	Silicon: "measured,concurrency,backend,backend_version,model_path,system,precision,mode,isl,osl,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,prefill_num_workers,decode_num_workers,silicon_ttft_ms,silicon_tpot_ms\n" +
		"2026-02-09,8,vllm,0.12,Qwen/Qwen3-32B,h100_sxm,fp8,agg,1024,128,16,2,1,,1,1,,,840.5,16.5\n",
	StageTable: "config,stage,count,requested_rate,achieved_rate,ok,failed,prompt_mean,output_mean,ttft_mean_s,ttft_p50_s,ttft_p90_s,ttft_p99_s,itl_mean_s,itl_p50_s,itl_p90_s,itl_p99_s,e2e_mean_s,e2e_p50_s,e2e_p90_s,e2e_p99_s\n" +
		"c,1,60,1,1.005,59,1,200.7,62.4,0.5,0.4,0.6,0.7,0.05,0.04,0.06,0.07,5,4,6,7\n",
	SplitwiseProfiles: "model,hardware,prompt_size,batch_size,token_size,prompt_time,token_time,e2e_time,tensor_parallel\nllama2-70b,a100-80gb,512,1,128,196.5,55,7169,2\n",
	SidecarCost:       "model_type,test_total_qps,batch,target_rps,actual_rps,ok_pct,avg_ms,p50_ms,p95_ms,p99_ms\nlightgbm,120,1,120.0,119.0,99.0,5.5,4.5,12.5,16.5\n",
	PodCounts:         "run,t_s,running,pending,init\nr,5.5,4,1,2\n",

	Mooncake: `{"timestamp": 1500, "input_length": 1000, "output_length": 64, "hash_ids": [7, 18446744073709551615]}` + "\n" +
		`{"timestamp": 3000, "input_length": 512, "output_length": 9, "hash_ids": [7]}` + "\n",
	Agentic: `{"session_id":"s","turn":1,"logged_at":"2026-04-23T17:42:24.5+00:00","model":"m","status":"success","input_length":5276,"output_length":101,"tools_hash":"5c9d","msg_hash_ids":[1,2],"msg_chars":[7035,341]}` + "\n" +
		`{"session_id":"s","turn":2,"logged_at":"2026-04-23T17:42:25.5+00:00","model":"m","status":"rate_limited","input_length":8,"output_length":0,"tools_hash":"","msg_hash_ids":[],"msg_chars":[]}` + "\n",
	EPP: `{"kv_cache_percentage": 0.25, "input_token_length": 48, "num_request_waiting": 1, "num_request_running": 2, "num_tokens_generated": 0, "actual_ttft_ms": 455, "actual_tpot_ms": 0, "prefix_cache_score": 0.5, "prefill_tokens_in_flight": 64, "decode_tokens_in_flight": 32}` + "\n" +
		`{"kv_cache_percentage": 0, "input_token_length": 48, "num_request_waiting": 0, "num_request_running": 0, "actual_ttft_ms": 0, "actual_tpot_ms": 12.5}` + "\n",
	AccessLog: `{"time": "2026-08-01T12:00:00.5Z", "request_id": "r1", "model": "m", "status": 200, "prompt_tokens": 812, "completion_tokens": 91, "ttft_ms": 150, "duration_ms": 1950, "upstream_host": "10.0.0.7:8000", "session": "s1"}` + "\n" +
		`{"time": 1785585601.5, "request_id": "r2", "model": "m", "status": 503, "prompt_tokens": 20, "completion_tokens": 0, "ttft_ms": null, "duration_ms": 3.5, "upstream_host": "-", "session": ""}` + "\n",
	OTLP: `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"llm_request","startTimeUnixNano":"1768922793659305984","endTimeUnixNano":"1768922795659305984","attributes":[{"key":"gen_ai.latency.time_to_first_token","value":{"doubleValue":0.5}},{"key":"gen_ai.latency.e2e","value":{"doubleValue":2}},{"key":"gen_ai.latency.time_in_queue","value":{"doubleValue":0.25}},{"key":"gen_ai.usage.prompt_tokens","value":{"intValue":"3140"}},{"key":"gen_ai.usage.completion_tokens","value":{"intValue":"4"}},{"key":"gen_ai.request.id","value":{"stringValue":"cmpl-1"}},{"key":"gen_ai.request.max_tokens","value":{"intValue":"1024"}}],"status":{"code":2}},{"name":"GET"}]}]}]}` + "\n",

	VLLMBench: `{"backend": "vllm", "model_id": "m", "num_prompts": 3, "input_lens": [10, 20, 25], "output_lens": [4, 1, 0], "ttfts": [0.25, 0.5, 0.0], "itls": [[0.25, 0.125, 0.375], [], []], "latencies": [1.5, 0.5, 0.0], "start_times": [100.0, 100.5, 101.0], "generated_texts": ["a \"NaN\" \\", "", ""], "errors": ["", "", "HTTP 503"], "goodput": NaN, "x": -Infinity}`,
	InferencePerf: `[{"start_time": 1000.0, "end_time": 1001.5, "request": "{}", "info": {"request_metrics": {"text": {"input_tokens": 12}}, "response_metrics": {"output_tokens": 3, "output_token_times": [1000.5, 1000.75, 1001.5]}}, "error": null},` +
		`{"start_time": 1001.0, "end_time": 1001.25, "request": "{}", "info": {"request_metrics": null}, "error": {"error_type": "ClientError", "error_msg": "503"}}]`,
	InferenceStages: `{"load_summary": {"count": 3, "requested_rate": 2.5, "achieved_rate": 2.25}, "successes": {"count": 2, "latency": {"request_latency": {"mean": 1, "median": 0.5, "p90": 2, "p99": 3}, "time_to_first_token": {"mean": 0.5, "median": 0.25, "p90": 1, "p99": 2}, "inter_token_latency": null}, "prompt_len": {"mean": 204.5}, "output_len": {"mean": 62.5}}, "failures": {"count": 1}}`,
	GuideLLM: `{"metadata": {"version": 1}, "benchmarks": [{"config": {}, "requests": {"successful": [{"request_id": "a", "info": {"status": "completed", "timings": {"request_start": 1000.5, "request_end": 1003}}, "input_metrics": {"text_tokens": 3255}, "output_metrics": {"text_tokens": 43}, "time_to_first_token_ms": 1437.5, "inter_token_latency_ms": 28.5}],` +
		` "errored": [{"request_id": "b", "info": {"error": "timeout", "timings": {"request_start": 1000.0, "request_end": 1060.0}}, "input_metrics": {"text_tokens": 3819}, "output_metrics": {"text_tokens": null}, "time_to_first_token_ms": null}], "incomplete": [], "total": null}}]}`,
}
